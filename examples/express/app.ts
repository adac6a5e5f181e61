import { createInbox } from '@webhook-inbox/core'
import { getWebhook, githubWebhook } from '@webhook-inbox/express'
import { sqliteStore } from '@webhook-inbox/sqlite'
import express from 'express'

const { WEBHOOK_SECRET = '', DATABASE = 'inbox.db', PORT = '3000' } = process.env

const store = sqliteStore({ path: DATABASE })
const inbox = createInbox({ store })
const app = express()

app.post('/webhooks/github', githubWebhook({ secret: WEBHOOK_SECRET, inbox }), (req, res) => {
  const { id, event } = getWebhook(req)
  console.log(`${event} ${id}`)
  res.sendStatus(204)
})

const server = app.listen(Number(PORT), () => console.log(`Listening on port ${PORT}`))

// No new request, then the runs in hand to their end.
process.once('SIGTERM', async () => {
  server.close()
  await inbox.drain()
  await store.close()
})
