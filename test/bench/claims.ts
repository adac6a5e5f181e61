/**
 * Claims through the stores' public API beside what people write by hand, on the same server in the same run.
 * The ratios are what counts: the absolute figures are the machine's.
 */
import type { ClaimEntry, Store } from '@webhook-inbox/core'
import { postgresStore } from '@webhook-inbox/postgres'
import { redisStore } from '@webhook-inbox/redis'
import { Redis } from 'ioredis'
import {
  openPool,
  type PostgresServer,
  postgresKinds,
  startPostgres,
} from '../services/postgres.ts'
import { startRedis } from '../services/redis.ts'
import { type Contender, compare, markdown } from './compare.ts'

const callerCounts = [1, 32, 256]
const retentionMs = 86_400_000
let tokens = 0

function entryOf(id: string): ClaimEntry {
  tokens += 1
  return {
    key: { provider: 'github', endpoint: '292430182', deliveryId: id },
    token: `token-${tokens}`,
    leaseMs: 30_000,
    mode: 'inline',
    fingerprint: 'f'.repeat(64),
    event: 'pull_request',
    action: 'opened',
    unfinishedRetentionMs: retentionMs,
  }
}

function ours(name: string, store: Store): Contender {
  return {
    name,
    async claim(id) {
      const [result] = await store.claim([entryOf(id)])
      if (result?.status !== 'claimed') throw new Error(`A new key was answered ${result?.status}.`)
    },
    async settle(id) {
      const entry = entryOf(id)
      const [result] = await store.claim([entry])
      if (result?.status !== 'claimed') throw new Error(`A new key was answered ${result?.status}.`)
      const hold = { key: entry.key, token: entry.token, fence: result.fence }
      await store.complete(hold, { retentionMs })
    },
    async repeat(id) {
      const [result] = await store.claim([entryOf(id)])
      if (result?.status !== 'completed') throw new Error(`A copy was answered ${result?.status}.`)
    },
  }
}

async function benchPostgres(server: PostgresServer): Promise<void> {
  const database = await server.createDatabase()
  const pool = openPool(server.url(database), 10)
  try {
    const store = postgresStore({ pool, onWarning: () => {} })
    await store.setup()
    await pool.query('CREATE TABLE by_hand (id text PRIMARY KEY, at timestamptz DEFAULT now())')
    const insert = 'INSERT INTO by_hand (id) VALUES ($1) ON CONFLICT DO NOTHING'
    const byHand: Contender = {
      name: 'INSERT … ON CONFLICT, one a call',
      async claim(id) {
        const { rowCount } = await pool.query(insert, [id])
        if (rowCount !== 1) throw new Error('A new key was taken.')
      },
      settle: async (id) => void (await pool.query(insert, [id])),
      async repeat(id) {
        const { rowCount } = await pool.query(insert, [id])
        if (rowCount !== 0) throw new Error('A copy was new.')
      },
    }
    const { rows } = await pool.query('SHOW server_version')
    const title = `Postgres ${String(rows[0]?.server_version)}, pool of 10, fsync on`
    console.log(markdown(title, await compare(ours('postgresStore', store), byHand, callerCounts)))
    await store.close()
  } finally {
    await pool.end()
    await server.stop()
  }
}

async function benchRedis(): Promise<void> {
  const server = await startRedis()
  const client = new Redis(server.url)
  const other = new Redis(server.url)
  try {
    const store = redisStore({ client, onWarning: () => {} })
    await store.setup()
    const byHand: Contender = {
      name: 'SET NX PX, one a call',
      async claim(id) {
        if ((await other.set(`by-hand:${id}`, 'claimed', 'PX', retentionMs, 'NX')) !== 'OK')
          throw new Error('A new key was taken.')
      },
      settle: async (id) => void (await other.set(`by-hand:${id}`, 'done', 'PX', retentionMs)),
      async repeat(id) {
        if ((await other.set(`by-hand:${id}`, 'claimed', 'PX', retentionMs, 'NX')) !== null)
          throw new Error('A copy was new.')
      },
    }
    const version = /redis_version:(\S+)/.exec(await client.info('server'))?.[1]
    const rows = await compare(ours('redisStore', store), byHand, callerCounts)
    console.log(markdown(`Redis ${version}, one connection each`, rows))
    await store.close()
  } finally {
    client.disconnect()
    other.disconnect()
    await server.stop()
  }
}

// As in production: a commit is on the disk before it is answered.
const durable = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' }
for (const kind of postgresKinds())
  await benchPostgres(await startPostgres({ kind, settings: durable }))
await benchRedis()
