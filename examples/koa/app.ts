import { createInbox } from '@webhook-inbox/core'
import { githubWebhook } from '@webhook-inbox/koa'
import { sqliteStore } from '@webhook-inbox/sqlite'
import Koa from 'koa'

const { WEBHOOK_SECRET = '', DATABASE = 'inbox.db', PORT = '3000' } = process.env

const store = sqliteStore({ path: DATABASE })
const inbox = createInbox({ store })

const app = new Koa()
  .use(githubWebhook({ secret: WEBHOOK_SECRET, inbox, path: '/webhooks/github' }))
  .use((ctx) => {
    if (ctx.state.webhook === undefined) return // another path
    const { id, event } = ctx.state.webhook
    console.log(`${event} ${id}`)
    ctx.status = 204
  })

const server = app.listen(Number(PORT), () => console.log(`Listening on port ${PORT}`))

// No new request, then the runs in hand to their end.
process.once('SIGTERM', async () => {
  server.close()
  await inbox.drain()
  await store.close()
})
