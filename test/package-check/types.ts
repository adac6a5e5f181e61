// Compiled in an empty folder against the installed packages, as a consumer's file.
import { createServer } from 'node:http'
import { PGlite } from '@electric-sql/pglite'
import {
  createInbox,
  createReceiver,
  defineProvider,
  githubWebhook as onFetch,
  PermanentError,
  type Provider,
  type ProviderDelivery,
  providers,
  type Store,
  verify,
} from '@webhook-inbox/core'
import { plaid } from '@webhook-inbox/core/jwt'
import { shopify } from '@webhook-inbox/core/providers'
import {
  captureRawBody,
  getWebhook,
  githubWebhook as onExpress,
  stripeWebhook,
  webhook,
} from '@webhook-inbox/express'
import { githubWebhook as onHono, providerWebhook, slackWebhook } from '@webhook-inbox/hono'
import { githubWebhook as onKoa } from '@webhook-inbox/koa'
import { githubWebhook as onNode } from '@webhook-inbox/node'
import { type PostgresClient, postgresStore } from '@webhook-inbox/postgres'
import { redisStore } from '@webhook-inbox/redis'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { signRequest, storeGuarantees } from '@webhook-inbox/testkit'
import express from 'express'
import { Hono } from 'hono'
import { Cluster, Redis } from 'ioredis'
import Koa from 'koa'
import pg from 'pg'

const secret = 'a secret'
const store: Store = sqliteStore({ path: 'inbox.db' })
const inbox = createInbox({ store, observer: (event) => console.log(event.type) })
const path = '/webhooks/github'

const app = express()
app.use('/other', express.json({ verify: captureRawBody }))
app.post(path, onExpress({ secret, inbox }), (req, res) => {
  const webhook = getWebhook(req)
  const event: string = webhook.event
  if (webhook.event === 'push') console.log(webhook.payload.ref.length)
  const attempt: number | undefined = req.webhook?.attempt
  res.json({ event, attempt })
})

new Koa().use(onKoa({ secret, store, path })).use((ctx) => {
  ctx.body = ctx.state.webhook.id
})

new Hono().post(path, onHono({ secret, store }), (c) => c.text(c.get('webhook').id))

createServer(
  onNode({
    secret,
    store,
    handler: (webhook, { req }) => {
      if (req.url === undefined || webhook.fence < 1) throw new PermanentError('odd')
    },
  }),
)

const handle: (request: Request) => Promise<Response> = onFetch({
  secret: async () => [secret],
  store,
  handler: async (webhook) => webhook.completeIn({}),
})

const entry: Provider = { ...providers.github, name: 'ours' }
const receiver = createReceiver({ provider: entry, secret, store })

// The catalogue: payloads of one's own, names, entries, and entries of one's own.
interface StripeEvent {
  readonly id: string
  readonly type: string
}
app.post(
  '/stripe',
  stripeWebhook<StripeEvent>({ secret, store, dedupBy: 'object' }),
  (req, res) => {
    const { payload, provider } = getWebhook<ProviderDelivery<'stripe', StripeEvent>>(req)
    const name: 'stripe' = provider
    res.json({ id: payload.id, name })
  },
)
app.post('/twilio', webhook({ provider: 'twilio', secret, store, publicUrl: 'https://a.example' }))
app.post('/plaid', webhook({ provider: plaid, store, keys: async () => undefined }))
// @ts-expect-error there is no such name
app.post('/none', webhook({ provider: 'shopfy', secret, store }))
// @ts-expect-error GitHub has a secret
app.post('/none', onExpress({ store }))
new Hono()
  .post('/slack', slackWebhook<{ readonly text: string }>({ secret, store }), (c) =>
    c.text(c.get('webhook').payload.text),
  )
  .post('/shopify', providerWebhook({ provider: shopify, secret, store }), (c) =>
    c.json(c.get('webhook').items?.map((item) => item.id) ?? []),
  )
export const acme = defineProvider({
  name: 'acme',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'acme-signature',
    encoding: 'hex',
    content: '{timestamp}.{body}',
    timestamp: { header: 'acme-timestamp', unit: 's', pastMs: 300_000 },
  },
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  retriesByItself: true,
  retentionMs: 7 * 86_400_000,
})

// Clients as they are.
export const stores: readonly Store[] = [
  postgresStore({ pool: new pg.Pool() }),
  postgresStore({ pool: new pg.Client() }),
  postgresStore({ pool: new PGlite() satisfies PostgresClient }),
  redisStore({ client: new Redis({ lazyConnect: true }) }),
  redisStore({ client: new Cluster([], { lazyConnect: true }) }),
]

export async function use(): Promise<void> {
  const signed = await signRequest('github', { secret, event: 'push' })
  const receipt = await receiver.receive({ ...signed, url: path, body: new Uint8Array() }, {})
  if (receipt.status !== 'claimed') console.log(receipt.answer.status)
  const verified = await verify('github', { ...signed, secret, body: new Uint8Array() })
  if (verified.valid) console.log(verified.delivery.event)
  else console.log(verified.code)
  await handle(new Request('https://hooks.example.test/', signed))
  console.log(typeof storeGuarantees)
}
