import { env } from 'cloudflare:workers'
import { memoryStore } from '@webhook-inbox/core'
import { githubWebhook } from '@webhook-inbox/hono'
import { Hono } from 'hono'

const app = new Hono()

// The memory store lives as long as its isolate: enough for a trial, not for production.
const store = memoryStore()

app.post('/webhooks/github', githubWebhook({ secret: env.WEBHOOK_SECRET, store }), (c) => {
  const { id, event } = c.get('webhook')
  console.log(`${event} ${id}`)
  return c.body(null, 204)
})

export default app
