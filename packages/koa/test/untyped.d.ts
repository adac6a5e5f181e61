// Packages without types of their own. Koa 2 stands under the name of its alias, typed as Koa 3.
declare module 'koa2' {
  import Koa from 'koa'
  export default Koa
}

declare module 'koa-bodyparser' {
  import type { Middleware } from 'koa'
  export default function bodyParser(options?: { enableTypes?: string[] }): Middleware
}

declare module 'koa-mount' {
  import type { Middleware } from 'koa'
  export default function mount(prefix: string, app: object): Middleware
}
