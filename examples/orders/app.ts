import { createServer } from 'node:http'
import { PGlite } from '@electric-sql/pglite'
import { createInbox, createWorker, defineProvider, PermanentError } from '@webhook-inbox/core'
import { webhook } from '@webhook-inbox/node'
import { postgresStore } from '@webhook-inbox/postgres'

const { WEBHOOK_SECRET = '', DATABASE = 'orders-db', PORT = '3000' } = process.env
const { PAYMENTS_URL = 'http://127.0.0.1:4000/charges' } = process.env

// Postgres inside this process; with a pg Pool the transaction below is that of a client of the pool.
const database = await PGlite.create(DATABASE)
await database.exec(
  `CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, status text, charge text)`,
)

const store = postgresStore({ pool: database, onWarning: () => {} })
await store.setup()
const inbox = createInbox({ store, retry: { minMs: 100 } })

// A shop of our own, which signs the raw body.
const shop = defineProvider({
  name: 'shop',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    encoding: 'hex',
    header: 'x-shop-signature',
    prefix: 'sha256=',
    content: '{body}',
  },
  deliveryId: { header: 'x-shop-delivery' },
  event: { header: 'x-shop-event' },
  retriesByItself: true,
  retentionMs: 7 * 86_400_000,
})

interface Order {
  readonly id: string
  readonly status: string
  readonly updatedAt: string
}

const worker = createWorker({
  inbox,
  providers: [shop],
  handlers: {
    async 'shop.order'(delivery) {
      const order = readOrder(delivery.payload)
      // The same key in every attempt: a charge whose answer was lost is not made twice.
      const charge = await createCharge(order, delivery.idempotencyKey('charge'))
      await database.transaction(async (tx) => {
        // Events come in any order: an older one must not overwrite a newer one.
        if (await inbox.latest(`order:${order.id}`, new Date(order.updatedAt), tx)) {
          await tx.query(
            `INSERT INTO orders VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET status = excluded.status`,
            [order.id, order.status, charge],
          )
        }
        // The last statement: the order and the completion commit together, or neither does.
        await delivery.completeIn(tx)
      })
    },
  },
})
worker.start()

async function createCharge(order: Order, key: string): Promise<string> {
  const answer = await fetch(PAYMENTS_URL, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ order: order.id }),
  })
  if (!answer.ok) throw new Error(`The payment API answered ${answer.status}.`)
  return answer.text()
}

function readOrder(payload: unknown): Order {
  if (typeof payload === 'object' && payload !== null) {
    const { id, status, updatedAt } = { id: '', status: '', updatedAt: '', ...payload }
    if (id !== '' && !Number.isNaN(Date.parse(updatedAt))) return { id, status, updatedAt }
  }
  throw new PermanentError('That is no order.')
}

const receive = webhook({
  provider: shop,
  secret: WEBHOOK_SECRET,
  inbox,
  queue: true,
  path: '/webhooks/shop',
})

const server = createServer((req, res) =>
  receive(req, res, async () => {
    const { rows } = await database.query('SELECT id, status, charge FROM orders ORDER BY id')
    res.setHeader('content-type', 'application/json')
    res.end(JSON.stringify(rows))
  }),
)
server.listen(Number(PORT), () => console.log(`Listening on port ${PORT}`))

process.once('SIGTERM', async () => {
  server.close()
  await worker.stop({ timeoutMs: 20_000 })
  await store.close()
  await database.close()
})
