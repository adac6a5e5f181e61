import { serve } from '@hono/node-server'
import { createInbox } from '@webhook-inbox/core'
import { githubWebhook } from '@webhook-inbox/hono'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { Hono } from 'hono'

const { WEBHOOK_SECRET = '', DATABASE = 'inbox.db', PORT = '3000' } = process.env

const store = sqliteStore({ path: DATABASE })
const inbox = createInbox({ store })
const app = new Hono()

app.post('/webhooks/github', githubWebhook({ secret: WEBHOOK_SECRET, inbox }), (c) => {
  const { id, event } = c.get('webhook')
  console.log(`${event} ${id}`)
  return c.body(null, 204)
})

const server = serve({ fetch: app.fetch, port: Number(PORT) }, () =>
  console.log(`Listening on port ${PORT}`),
)

// No new request, then the runs in hand to their end.
process.once('SIGTERM', async () => {
  server.close()
  await inbox.drain()
  await store.close()
})
