// The store on other libraries' clients, and completion in their own transactions. What stands in the README of the
// package is what is used here.
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Pool as NeonPool, neonConfig } from '@neondatabase/serverless'
import type { ClaimEntry, Hold, Store } from '@webhook-inbox/core'
import { type PostgresClient, postgresStore } from '@webhook-inbox/postgres'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createWebSocketStream, WebSocket, WebSocketServer } from 'ws'
import {
  onConnection,
  openPool,
  type PostgresServer,
  postgresTargets,
} from '../services/postgres.ts'

const retention = { retentionMs: 60_000 }
let server: PostgresServer
let url: string
let pool: pg.Pool

beforeAll(async () => {
  const target = postgresTargets().at(-1)
  if (target === undefined) throw new Error('No PostgreSQL is here.')
  server = await target.start()
  url = server.url(await server.createDatabase())
  pool = openPool(url, 4)
  await onConnection(url, (client) => client.query('CREATE TABLE orders (id text PRIMARY KEY)'))
})
afterAll(async () => {
  await pool?.end()
  await server?.stop()
})

function entryOf(deliveryId: string): ClaimEntry {
  return {
    key: { provider: 'github', endpoint: '', deliveryId },
    token: `token-${deliveryId}`,
    leaseMs: 60_000,
    mode: 'inline',
    unfinishedRetentionMs: 3_600_000,
  }
}

async function statusOf(store: Store, deliveryId: string): Promise<string | undefined> {
  const [result] = await store.claim([{ ...entryOf(deliveryId), token: 'a copy' }])
  return result?.status
}

async function grant(store: Store, deliveryId: string): Promise<Hold> {
  const entry = entryOf(deliveryId)
  const [result] = await store.claim([entry])
  if (result?.status !== 'claimed') throw new Error(`The claim was answered ${result?.status}.`)
  return { key: entry.key, token: entry.token, fence: result.fence }
}

async function ordersOf(prefix: string): Promise<number> {
  const { rows } = await pool.query('SELECT FROM orders WHERE starts_with(id, $1)', [prefix])
  return rows.length
}

/** Sets up, claims, answers a copy, keeps bytes, and completes in a transaction that is rolled back and one that is not. */
async function tryOut(
  name: string,
  client: PostgresClient,
  /** Inserts an order, completes and commits; with `undo` it rolls back by throwing it. */
  transact: (
    order: string,
    complete: (tx: unknown) => Promise<void>,
    undo?: Error,
  ) => Promise<void>,
): Promise<void> {
  const store = postgresStore({ pool: client, table: `inbox_${name}`, onWarning: () => {} })
  await store.setup()
  const hold = await grant(store, 'd')
  expect(await statusOf(store, 'd')).toBe('processing')
  const complete = async (tx: unknown) => {
    expect(await store.complete(hold, retention, tx)).toBe('ok')
  }
  const undo = new Error('undo')
  await expect(transact(`${name}-undone`, complete, undo)).rejects.toBe(undo)
  expect(await statusOf(store, 'd')).toBe('processing')
  await transact(`${name}-done`, complete)
  expect(await statusOf(store, 'd')).toBe('completed')
  expect(await ordersOf(`${name}-`)).toBe(1)

  const body = Uint8Array.from({ length: 256 }, (_, byte) => byte)
  const headers = { 'x-quote': '" \\ ünïcode' }
  await store.claim([{ ...entryOf('q'), mode: 'queued', payload: { body, headers } }])
  const [taken] = await store.take({ limit: 1, leaseMs: 1000, deadRetentionMs: 1000 })
  expect(taken?.payload).toEqual({ body, headers })
  await store.close()
}

describe('postgresStore', () => {
  it('works on Drizzle', async () => {
    const db = drizzle(pool)
    await tryOut('drizzle', db.$client, async (order, complete, undo) => {
      const client = await db.$client.connect()
      try {
        const onClient = drizzle(client)
        await onClient.execute(sql`BEGIN`)
        await onClient.execute(sql`INSERT INTO orders VALUES (${order})`)
        await complete(client)
        if (undo !== undefined) throw undo
        await onClient.execute(sql`COMMIT`)
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      } finally {
        client.release()
      }
    })
  })

  it('works on Kysely, in a transaction of Kysely', async () => {
    const db = new Kysely<{ orders: { id: string } }>({ dialect: new PostgresDialect({ pool }) })
    const clientOf = (on: typeof db): PostgresClient => ({
      query: (text, values = []) => on.executeQuery(CompiledQuery.raw(text, values)),
    })
    await tryOut('kysely', clientOf(db), (order, complete, undo) =>
      db.transaction().execute(async (tx) => {
        await tx.insertInto('orders').values({ id: order }).execute()
        await complete(clientOf(tx))
        if (undo !== undefined) throw undo
      }),
    )
  })

  it("works on the Pool of Neon's driver, over WebSocket", async () => {
    const proxy = await startWebSocketProxy(server)
    neonConfig.webSocketConstructor = WebSocket
    neonConfig.wsProxy = () => proxy.address
    neonConfig.useSecureWebSocket = false
    neonConfig.pipelineConnect = false
    const neon = new NeonPool({ connectionString: url, max: 3 })
    try {
      await tryOut('neon', neon, async (order, complete, undo) => {
        const client = await neon.connect()
        try {
          await client.query('BEGIN')
          await client.query('INSERT INTO orders VALUES ($1)', [order])
          await complete(client)
          if (undo !== undefined) throw undo
          await client.query('COMMIT')
        } catch (error) {
          await client.query('ROLLBACK')
          throw error
        } finally {
          client.release()
        }
      })
    } finally {
      await neon.end()
      await proxy.stop()
    }
  })
})

/** What stands before a database of Neon: bytes of a WebSocket to its socket and back. */
async function startWebSocketProxy({
  host,
  port,
}: PostgresServer): Promise<{ readonly address: string; stop(): Promise<void> }> {
  const http = createServer()
  const sockets = new WebSocketServer({ server: http })
  sockets.on('connection', (socket) => {
    const inner = connect(port, host)
    const outer = createWebSocketStream(socket)
    inner.on('error', () => outer.destroy())
    outer.on('error', () => inner.destroy())
    outer.pipe(inner).pipe(outer)
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port: own } = http.address() as AddressInfo
  return {
    address: `127.0.0.1:${own}`,
    async stop() {
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}
