import { createServer } from 'node:http'
import { githubWebhook } from '@webhook-inbox/koa'
import Koa from 'koa'
import { inbox, path, secret, serve, work } from './receiver.ts'

const app = new Koa().use(githubWebhook({ secret, inbox, path })).use(async (ctx) => {
  await work(ctx.state.webhook)
  ctx.status = 204
})
serve(createServer(app.callback()))
