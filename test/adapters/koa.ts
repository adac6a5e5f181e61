import Router from '@koa/router'
import { githubWebhook } from '@webhook-inbox/koa'
import type { AdapterHarness, AdapterSetup } from '@webhook-inbox/testkit'
import Koa3, { type Middleware } from 'koa'
import Koa2 from 'koa2'
import { listen, webhookPath } from './server.ts'

function appOf(Koa: new () => Koa3, { options, mount, respond }: AdapterSetup): Koa3 {
  const app = new Koa()
  app.silent = true
  const route: Middleware = async (ctx) => {
    const answer = await respond(ctx.state.webhook)
    if (answer === undefined) return
    ctx.status = answer.status
    ctx.set(answer.headers ?? {})
    if (answer.body !== undefined) ctx.body = answer.body
  }
  if (mount === 'route') {
    const router = new Router()
    router.post(webhookPath, githubWebhook(options), route)
    app.use(router.routes())
  } else {
    app.use(githubWebhook({ ...options, path: webhookPath }))
    app.use(route)
  }
  return app
}

function harnessOf(name: string, Koa: new () => Koa3) {
  return {
    name,
    features: ['route', 'next', 'socket'],
    app: (setup: AdapterSetup) => appOf(Koa, setup).callback(),
    serve: (setup: AdapterSetup) => listen(appOf(Koa, setup).callback()),
  } as const satisfies AdapterHarness & { app(setup: AdapterSetup): unknown }
}

export const onKoa2 = harnessOf('koa 2', Koa2)
export const onKoa3 = harnessOf('koa 3', Koa3)
