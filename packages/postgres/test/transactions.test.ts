import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startPgBouncer } from '../../../test/services/pgbouncer.ts'
import {
  newestPostgres,
  type PostgresServer,
  startPostgres,
} from '../../../test/services/postgres.ts'
import { claimOne, grant, inTransaction, openStore, quietStore, rejectionOf } from './support.ts'

let server: PostgresServer
let url: string
beforeAll(async () => {
  server = await startPostgres({ kind: newestPostgres() })
})
afterAll(() => server?.stop())
beforeEach(async () => {
  url = server.url(await server.createDatabase())
})

const settled = { retentionMs: 60_000 }

describe('completion in the caller’s transaction', () => {
  it('commits with the business change, and rolls back with it', async () => {
    const { store, pool, close } = await openStore(url)
    await pool.query('CREATE TABLE orders (id text)')
    const hold = await grant(store, 'd')
    const client = await pool.connect()
    const undone = new Error('undone')
    const failed = inTransaction(client, async (tx) => {
      await tx.query(`INSERT INTO orders VALUES ('a')`)
      expect(await store.complete(hold, settled, tx)).toBe('ok')
      throw undone
    })
    expect(await rejectionOf(failed)).toBe(undone)
    expect(await store.get(hold.key)).toMatchObject({ state: 'processing', fence: hold.fence })
    expect(await store.renew(hold, 60_000)).toBe('ok')
    await inTransaction(client, async (tx) => {
      await tx.query(`INSERT INTO orders VALUES ('b')`)
      expect(await store.complete(hold, settled, tx)).toBe('ok')
    })
    expect((await pool.query('SELECT id FROM orders')).rows).toEqual([{ id: 'b' }])
    expect((await claimOne(store, 'd')).status).toBe('completed')
    client.release()
    await close()
  })

  it('says `lost` after a takeover, also when it began before', async () => {
    const { store, pool, close } = await openStore(url)
    const hold = await grant(store, 'd')
    const client = await pool.connect()
    await inTransaction(client, async (tx) => {
      await tx.query('SELECT 1')
      await pool.query('UPDATE webhook_inbox SET until_at = 1')
      expect((await claimOne(store, 'd')).status).toBe('claimed')
      expect(await store.complete(hold, settled, tx)).toBe('lost')
    })
    client.release()
    await close()
  })

  it('keeps nobody waiting: copies are answered while it is open', async () => {
    const { store, pool, close } = await openStore(url, { timeoutMs: 1500 })
    const hold = await grant(store, 'd', { leaseMs: 1 })
    const client = await pool.connect()
    await inTransaction(client, async (tx) => {
      expect(await store.complete(hold, settled, tx)).toBe('ok')
      const startedAtMs = performance.now()
      const copies = await Promise.all(Array.from({ length: 50 }, () => claimOne(store, 'd')))
      expect(performance.now() - startedAtMs).toBeLessThan(1000)
      expect(new Set(copies.map(({ status }) => status))).toEqual(new Set(['processing']))
      expect(await store.take({ limit: 10, leaseMs: 1000, deadRetentionMs: 1000 })).toEqual([])
      expect(await store.purge(10)).toBe(0)
    })
    expect((await claimOne(store, 'd')).status).toBe('completed')
    client.release()
    await close()
  })

  it('works through PgBouncer on a pool of one server connection', async () => {
    const pgBouncer = await startPgBouncer(server, { poolSize: 1 })
    const through = pgBouncer.url(url.split('/').at(-1) ?? '')
    const { store, pool, close } = await openStore(through)
    const hold = await grant(store, 'd')
    const client = await pool.connect()
    await inTransaction(client, async (tx) => {
      expect(await store.complete(hold, settled, tx)).toBe('ok')
    })
    client.release()
    expect((await claimOne(store, 'd')).status).toBe('completed')
    await close()
    await pgBouncer.stop()
  })

  it('refuses what is no open transaction of this database, and the claim stands', async () => {
    const { store, pool, close } = await openStore(url)
    const hold = await grant(store, 'd')
    const refusal = async (tx: unknown) => {
      const error = await rejectionOf(store.complete(hold, settled, tx))
      expect(error).toMatchObject({ code: 'ERR_TRANSACTION' })
      return String(error)
    }
    expect(await refusal(pool)).toContain('a pool has no transaction')
    expect(await refusal({})).toContain('completeIn(tx)')
    expect(await refusal('BEGIN')).toContain('completeIn(tx)')
    const client = await pool.connect()
    expect(await refusal(client)).toContain('Send BEGIN first')
    await client.query('BEGIN')
    await rejectionOf(client.query('SELECT nothing'))
    expect(await refusal(client)).toContain('rolled back')
    await client.query('ROLLBACK')
    client.release()
    const elsewhere = new pg.Client({ connectionString: server.url(await server.createDatabase()) })
    await elsewhere.connect()
    await elsewhere.query('BEGIN')
    expect(await refusal(elsewhere)).toContain('has no tables')
    await elsewhere.end()
    expect(await store.get(hold.key)).toMatchObject({ state: 'processing' })
    await close()
  })

  it('leaves the error of a lost race to the caller’s own retry', async () => {
    const { store, pool, close } = await openStore(url)
    const hold = await grant(store, 'd')
    const client = await pool.connect()
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
    await client.query('SELECT 1')
    await store.renew(hold, 60_000)
    expect(await rejectionOf(store.complete(hold, settled, client))).toMatchObject({
      code: '40001',
    })
    await client.query('ROLLBACK')
    client.release()
    await close()
  })
})

it('uses a single pg Client as it is', async () => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const store = quietStore({ pool: client })
  await store.setup()
  expect((await claimOne(store, 'd')).status).toBe('claimed')
  await store.close()
  await client.end()
})
