import { type PostgresClient, postgresStore, schemaSql } from '@webhook-inbox/postgres'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  type OwnPostgresServer,
  onConnection,
  openPool,
  startPostgres,
} from '../../../test/services/postgres.ts'
import { claimOne, entryOf, grant, openStore, quietStore, rejectionOf } from './support.ts'

let server: OwnPostgresServer
let database: string
let url: string
beforeAll(async () => {
  server = await startPostgres()
})
afterAll(() => server?.stop())
beforeEach(async () => {
  database = await server.createDatabase()
  url = server.url(database)
})

async function setupErrorOn(target: string): Promise<string> {
  const pool = openPool(target, 1)
  const error = await rejectionOf(quietStore({ pool }).setup())
  await pool.end()
  expect(error).toMatchObject({ code: 'ERR_STORE_SETUP' })
  return String(error)
}

describe('setup', () => {
  it('creates the tables once, from many processes at once, and leaves nothing of its check', async () => {
    const stores = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const pool = openPool(url, 2)
        return { pool, store: quietStore({ pool, schema: 'inbox' }) }
      }),
    )
    await Promise.all(stores.map(({ store }) => store.setup()))
    const [first] = stores
    expect((await first?.store.list())?.records).toEqual([])
    for (const { pool } of stores) await pool.end()
  })

  it('is named by the error of a store without its tables', async () => {
    const pool = openPool(url, 1)
    const store = quietStore({ pool })
    for (const call of [
      () => claimOne(store, 'a'),
      () => store.get(entryOf('a').key),
      () => store.stats(),
    ]) {
      const error = await rejectionOf(call())
      expect(error).toMatchObject({ code: 'ERR_STORE_SETUP' })
      expect(String(error)).toContain('store.setup()')
    }
    await pool.end()
  })

  it('accepts tables that were made with schemaSql', async () => {
    await onConnection(url, (client) => client.query(schemaSql({ schema: 'mine', table: 'hooks' })))
    const { store, close } = await openStore(url, { schema: 'mine', table: 'hooks' })
    expect((await claimOne(store, 'a')).status).toBe('claimed')
    await close()
  })

  it('refuses a foreign table, a newer schema, a wrong encoding and another isolation', async () => {
    await onConnection(url, (client) => client.query('CREATE TABLE webhook_inbox (id integer)'))
    expect(await setupErrorOn(url)).toContain(`not this store's`)

    const newer = server.url(await server.createDatabase())
    await (await openStore(newer)).close()
    await onConnection(newer, (client) =>
      client.query('UPDATE webhook_inbox_meta SET schema_version = 99'),
    )
    expect(await setupErrorOn(newer)).toContain('update @webhook-inbox/postgres')

    await onConnection(server.url(), async (client) => {
      await client.query(`CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`)
      await client.query(
        `ALTER DATABASE ${database} SET default_transaction_isolation = 'repeatable read'`,
      )
    })
    expect(await setupErrorOn(server.url('latin'))).toContain('LATIN1')
    expect(await setupErrorOn(url)).toContain('read committed')
  })

  it('tells a role without rights what it needs', async () => {
    await (await openStore(url)).close()
    await onConnection(url, (client) =>
      client.query(
        `CREATE ROLE weak_${database} LOGIN; GRANT USAGE ON SCHEMA public TO weak_${database}`,
      ),
    )
    const weak = new URL(url)
    weak.username = `weak_${database}`
    expect(await setupErrorOn(weak.href)).toContain('Grant it USAGE')
  })

  it('warns of a server that goes on after the store has given up, or forgets commits', async () => {
    const heard: string[] = []
    const warned = async (target: string) => {
      heard.length = 0
      const pool = openPool(target, 1)
      await postgresStore({ pool, onWarning: (message) => heard.push(message) }).setup()
      await pool.end()
      return heard.join(' ')
    }
    expect(await warned(url)).toContain('statement_timeout is off')
    await onConnection(server.url(), async (client) => {
      await client.query(`ALTER DATABASE ${database} SET statement_timeout = '1500ms'`)
      await client.query(`ALTER DATABASE ${database} SET synchronous_commit = off`)
    })
    const warning = await warned(url)
    expect(warning).toContain('synchronous_commit is off')
    expect(warning).not.toContain('statement_timeout')
  })

  it('warns of a pool that waits for ever for a connection', async () => {
    for (const [connectionTimeoutMillis, warns] of [
      [undefined, true],
      [0, true],
      [1500, false],
    ] as const) {
      const heard: string[] = []
      const pool = new pg.Pool({ connectionString: url, connectionTimeoutMillis })
      await postgresStore({ pool, onWarning: (message) => heard.push(message) }).setup()
      await pool.end()
      expect(heard.some((message) => message.includes('connectionTimeoutMillis'))).toBe(warns)
    }
  })

  it('finds a client that does not send what it is asked to send', async () => {
    const pool = openPool(url, 1)
    await quietStore({ pool }).setup()
    const deaf: PostgresClient = {
      query: (text, values) =>
        text.includes('_complete_1')
          ? Promise.resolve({ rows: [{ n: '1', answer: 'lost' }] })
          : pool.query(text, values),
    }
    expect(await rejectionOf(quietStore({ pool: deaf }).setup())).toMatchObject({
      code: 'ERR_STORE_SETUP',
      message: expect.stringContaining('self-check'),
    })
    await pool.end()
  })
})

it('works on postgres.js by two lines', async () => {
  const sql = postgres(url, { max: 3, onnotice: () => {} })
  const pool: PostgresClient = {
    query: async (text, values = []) => ({ rows: await sql.unsafe(text, values) }),
  }
  const store = quietStore({ pool })
  await store.setup()
  const hold = await grant(store, 'd')
  await sql.begin(async (transaction) => {
    const tx: PostgresClient = {
      query: async (text, values = []) => ({ rows: await transaction.unsafe(text, values) }),
    }
    expect(await store.complete(hold, { retentionMs: 60_000 }, tx)).toBe('ok')
  })
  expect((await claimOne(store, 'd')).status).toBe('completed')
  const body = Uint8Array.from({ length: 256 }, (_, byte) => byte)
  await claimOne(store, 'q', { mode: 'queued', payload: { body, headers: { a: '"' } } })
  const [taken] = await store.take({ limit: 1, leaseMs: 1000, deadRetentionMs: 1000 })
  expect(taken?.payload).toEqual({ body, headers: { a: '"' } })
  await sql.end()
})

it('sends a statement once through a client whose promises begin their work when they are asked', async () => {
  const { pool, close } = await openStore(url)
  let sent = 0
  const lazy: PostgresClient = {
    query(text, values) {
      const run = () => {
        sent += 1
        return pool.query(text, values)
      }
      return {
        // biome-ignore lint/suspicious/noThenProperty: what query builders such as Drizzle and Knex answer
        then: (...listeners) => run().then(...listeners),
        catch: (listener) => run().catch(listener),
        finally: (listener) => run().finally(listener),
        [Symbol.toStringTag]: 'Promise',
      }
    },
  }
  const store = quietStore({ pool: lazy })
  await store.setup()
  const hold = await grant(store, 'lazy')
  sent = 0
  expect(await store.complete(hold, { retentionMs: 60_000 })).toBe('ok')
  expect(sent).toBe(1)
  await close()
})

it('keeps a completed record in at most 220 bytes, indexes included', async () => {
  const { store, pool, close } = await openStore(url, { timeoutMs: 10_000 })
  const details = { event: 'pull_request', action: 'opened' }

  async function deliver(records: number): Promise<number> {
    let begun = 0
    const one = async () => {
      while (begun < records) {
        begun += 1
        const isRound = begun % 1000 === 0
        const deliveryId = crypto.randomUUID()
        const hold = await grant(store, deliveryId, {
          ...details,
          key: { provider: 'github', endpoint: '512345678', deliveryId },
          fingerprint: deliveryId.replaceAll('-', '').repeat(2),
        })
        await store.complete(hold, { retentionMs: 30 * 86_400_000 })
        // What autovacuum does with the settings of the tables; this server has none.
        if (isRound) await pool.query('VACUUM webhook_inbox')
      }
    }
    await Promise.all(Array.from({ length: 16 }, one))
    await pool.query('VACUUM webhook_inbox')
    const { rows } = await pool.query<{ bytes: string }>(
      `SELECT pg_total_relation_size('webhook_inbox') AS bytes`,
    )
    return Number(rows[0]?.bytes)
  }

  // The pages of a tree split in waves: from one size to twice that is a whole wave.
  const records = 10_000
  const before = await deliver(records)
  const after = await deliver(records)
  expect((after - before) / records).toBeLessThanOrEqual(220)
  expect((after - before) / records).toBeGreaterThan(150)
  await close()
})
