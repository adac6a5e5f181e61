import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { githubWebhook } from '@webhook-inbox/hono'
import { Hono } from 'hono'
import { inbox, path, secret, serve, work } from './receiver.ts'

const app = new Hono()
app.post(path, githubWebhook({ secret, inbox }), async (c) => {
  await work(c.get('webhook'))
  return c.body(null, 204)
})
serve(createServer(getRequestListener(app.fetch)))
