import type { ClaimEntry, ClaimResult, DeliveryKey, Hold, Store } from '@webhook-inbox/core'
import {
  type PostgresClient,
  type PostgresStoreOptions,
  postgresStore,
} from '@webhook-inbox/postgres'
import type pg from 'pg'
import { onConnection, openPool } from '../../../test/services/postgres.ts'

export function keyOf(deliveryId: string): DeliveryKey {
  return { provider: 'github', endpoint: '', deliveryId }
}

let tokens = 0

export function entryOf(deliveryId: string, overrides: Partial<ClaimEntry> = {}): ClaimEntry {
  tokens += 1
  return {
    key: keyOf(deliveryId),
    token: `token-${process.pid}-${tokens}`,
    leaseMs: 60_000,
    mode: 'inline',
    unfinishedRetentionMs: 3_600_000,
    ...overrides,
  }
}

export async function claimOne(
  store: Store,
  deliveryId: string,
  overrides: Partial<ClaimEntry> = {},
): Promise<ClaimResult> {
  const [result] = await store.claim([entryOf(deliveryId, overrides)])
  if (result === undefined) throw new Error('The store answered nothing.')
  return result
}

/** Claims what must be free. */
export async function grant(
  store: Store,
  deliveryId: string,
  overrides: Partial<ClaimEntry> = {},
): Promise<Hold> {
  const entry = entryOf(deliveryId, overrides)
  const [result] = await store.claim([entry])
  if (result?.status !== 'claimed') throw new Error(`The claim was answered ${result?.status}.`)
  return { key: entry.key, token: entry.token, fence: result.fence }
}

/** The error that a call rejects with. */
export async function rejectionOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('The call had to reject.')
}

/** A store without the warnings that a test server deserves. */
export function quietStore(
  options: Omit<PostgresStoreOptions, 'onWarning'> & Partial<PostgresStoreOptions>,
): Store {
  return postgresStore({ onWarning: () => {}, ...options })
}

/** A pool and a store on it, set up; `close` ends both. */
export async function openStore(
  connectionString: string,
  options: Partial<PostgresStoreOptions> & { readonly max?: number } = {},
): Promise<{ readonly store: Store; readonly pool: pg.Pool; close(): Promise<void> }> {
  const { max = 5, ...rest } = options
  const pool = openPool(connectionString, max)
  const store = quietStore({ pool, ...rest })
  await store.setup()
  return {
    store,
    pool,
    async close() {
      await store.close()
      await pool.end()
    },
  }
}

/**
 * A clock for the database that can be moved: the store asks for `statement_timestamp()`, and finds this one first in
 * databases whose search path begins with `test_clock`.
 */
export const movableClock: readonly string[] = [
  'CREATE SCHEMA test_clock',
  'CREATE TABLE test_clock.shift (ms bigint NOT NULL)',
  'INSERT INTO test_clock.shift VALUES (0)',
  `CREATE FUNCTION test_clock.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.statement_timestamp() + ms * interval '1 millisecond' FROM test_clock.shift
  $$`,
]

export const clockSearchPath = 'test_clock, pg_catalog, public'

export async function moveClock(client: PostgresClient, ms: number): Promise<void> {
  await client.query('UPDATE test_clock.shift SET ms = ms + $1::bigint', [String(ms)])
}

/** Runs work in a transaction on a client. */
export async function inTransaction<Client extends PostgresClient>(
  client: Client,
  work: (tx: Client) => Promise<void>,
): Promise<void> {
  await client.query('BEGIN')
  try {
    await work(client)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  }
}

/** Deadlocks that a database has seen so far. */
export async function deadlocks(url: string): Promise<number> {
  return onConnection(url, async (client) => {
    await client.query('SELECT pg_stat_clear_snapshot()')
    const { rows } = await client.query<{ deadlocks: string }>(
      'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
    )
    return Number(rows[0]?.deadlocks)
  })
}
