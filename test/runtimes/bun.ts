import { answer } from './app.ts'

declare const Bun: {
  serve(options: {
    hostname: string
    port: number
    fetch(request: Request): Response | Promise<Response>
  }): { readonly port: number }
}

const { port } = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => answer(request) })
console.log(`ready ${port}`)
