import { createInbox, createWorker } from '@webhook-inbox/core'
import { githubWebhook } from '@webhook-inbox/express'
import { sqliteStore } from '@webhook-inbox/sqlite'
import express from 'express'

const { WEBHOOK_SECRET = '', DATABASE = 'inbox.db', PORT = '3000' } = process.env

const store = sqliteStore({ path: DATABASE })
const inbox = createInbox({ store })
const app = express()

// Answered 202 as soon as it is stored.
app.post('/webhooks/github', githubWebhook({ secret: WEBHOOK_SECRET, inbox, queue: true }))

// Here in the same process; any number of others may do the same on this file.
const worker = createWorker({
  inbox,
  handlers: {
    'github.push': ({ id, payload }) => console.log(`push to ${payload.ref} ${id}`),
    'github.issues.opened': ({ id, payload }) => console.log(`${payload.issue.title} ${id}`),
    // Whatever is not handled becomes a dead letter, unless it is dropped by intent.
    '*': () => {},
  },
})
worker.start()

const server = app.listen(Number(PORT), () => console.log(`Listening on port ${PORT}`))

// No new request, then the runs in hand to their end; what has not begun is given back.
process.once('SIGTERM', async () => {
  server.close()
  await worker.stop({ timeoutMs: 20_000 })
  await store.close()
})
