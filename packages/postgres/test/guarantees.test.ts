import { PGlite } from '@electric-sql/pglite'
import type { PostgresClient } from '@webhook-inbox/postgres'
import { type StoreFeature, storeGuarantees } from '@webhook-inbox/testkit'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type PgBouncer, startPgBouncer } from '../../../test/services/pgbouncer.ts'
import {
  onConnection,
  openPool,
  type PostgresServer,
  postgresTargets,
} from '../../../test/services/postgres.ts'
import { clockSearchPath, inTransaction, movableClock, moveClock, quietStore } from './support.ts'

const runner = { describe, it, expect }
const features: readonly StoreFeature[] = ['second', 'transactions', 'watch', 'writes']

let schemas = 0
const tables = ['', '_contents', '_lines', '_attempts', '_latest']

/** Whatever writes or locks a row takes a transaction id. */
async function transactionIds(client: PostgresClient): Promise<number> {
  const { rows } = await client.query(
    'SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next',
  )
  const [row] = rows
  if (typeof row !== 'object' || row === null || !('next' in row))
    throw new Error('The server told no transaction id.')
  return Number(row.next)
}

/** Registers the suite on a database that {@link movableClock} was run in; each guarantee begins with empty tables. */
function guarantees(
  name: string,
  connect: () => {
    readonly pool: PostgresClient
    /** Another client for the same database, which the hooks of the suite use. */
    readonly admin: PostgresClient
    transaction(work: (tx: unknown) => Promise<void>): Promise<void>
  },
): void {
  schemas += 1
  const schema = `inbox_${schemas}`
  let isSetUp = false
  storeGuarantees(runner, {
    name,
    features,
    async create() {
      const { pool, admin, transaction } = connect()
      const store = quietStore({ pool, schema })
      if (!isSetUp) await store.setup()
      isSetUp = true
      await admin.query(`TRUNCATE ${tables.map((name) => `${schema}.webhook_inbox${name}`).join()}`)
      return {
        store,
        second: async () => quietStore({ pool, schema }),
        advance: (ms) => moveClock(admin, ms),
        transaction,
        writes: () => transactionIds(admin),
        close: () => store.close(),
      }
    },
  })
}

for (const target of postgresTargets()) {
  describe(target.name, () => {
    let server: PostgresServer
    let pgBouncer: PgBouncer
    let direct: pg.Pool
    let pooled: pg.Pool

    beforeAll(async () => {
      server = await target.start()
      pgBouncer = await startPgBouncer(server)
      const database = await server.createDatabase()
      await onConnection(server.url(database), async (client) => {
        for (const statement of movableClock) await client.query(statement)
        await client.query(`ALTER DATABASE ${database} SET search_path = ${clockSearchPath}`)
      })
      direct = openPool(server.url(database), 4)
      pooled = openPool(pgBouncer.url(database), 8)
    })
    afterAll(async () => {
      await direct?.end()
      await pooled?.end()
      await pgBouncer?.stop()
      await server?.stop()
    })

    async function transaction(pool: pg.Pool, work: (tx: unknown) => Promise<void>): Promise<void> {
      const client = await pool.connect()
      try {
        await inTransaction(client, work)
      } finally {
        client.release()
      }
    }

    guarantees('postgresStore on a pg Pool', () => ({
      pool: direct,
      admin: direct,
      transaction: (work) => transaction(direct, work),
    }))
    guarantees('postgresStore through PgBouncer in transaction mode', () => ({
      pool: pooled,
      admin: direct,
      transaction: (work) => transaction(pooled, work),
    }))
  })
}

describe('PGlite', () => {
  let database: PGlite

  beforeAll(async () => {
    database = await PGlite.create()
    for (const statement of movableClock) await database.query(statement)
    await database.query(`SET search_path = ${clockSearchPath}`)
  })
  afterAll(() => database?.close())

  guarantees('postgresStore on PGlite', () => ({
    pool: database,
    admin: database,
    transaction: (work) => database.transaction(work),
  }))
})
