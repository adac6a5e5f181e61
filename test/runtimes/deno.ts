import { answer } from './app.ts'

declare const Deno: {
  serve(
    options: {
      hostname: string
      port: number
      onListen(address: { readonly port: number }): void
    },
    handler: (request: Request) => Response | Promise<Response>,
  ): unknown
}

Deno.serve(
  { hostname: '127.0.0.1', port: 0, onListen: ({ port }) => console.log(`ready ${port}`) },
  (request) => answer(request),
)
