import {
  optionError,
  readClock,
  rejectUnknownOptions,
  type Store,
  type StoredPayload,
  storeUnavailable,
  WebhookInboxError,
} from '@webhook-inbox/core'
import {
  createLine,
  inForeignTransaction,
  isBusy,
  isStaleSnapshot,
  isStatementError,
} from './busy.ts'
import { createClaim } from './claim.ts'
import { connectionTo, isSqliteDatabase, type SqliteDatabase } from './driver.ts'
import { openDatabase } from './open.ts'
import { createOperator } from './operator.ts'
import { setUpSchema, tablesOf } from './schema.ts'
import { createSettling } from './settle.ts'
import { type Connection, inSavepoint, integer, statement, text } from './statement.ts'
import { createTake } from './take.ts'
import { createTogether } from './together.ts'

interface SharedOptions {
  /** Name of the main table; the others add `_contents` and `_meta`. Letters, digits and `_`. @default 'webhook_inbox' */
  readonly table?: string
  /**
   * How long a call waits for a lock before it throws `ERR_STORE_UNAVAILABLE`. The wait never blocks the event
   * loop. Keep it below the inbox's `storeTimeoutMs`. @default 1500
   */
  readonly busyTimeoutMs?: number
  /** The store's clock, in epoch milliseconds, for tests. @default Date.now */
  readonly now?: () => number
}

/** Either a `path` of the store's own, or a `database` of yours. */
export type SqliteStoreOptions = SharedOptions &
  (
    | {
        /** A file, created when it is not there, or `:memory:`. Opened with `node:sqlite` or `bun:sqlite`. */
        readonly path: string
        readonly database?: never
      }
    | {
        /** Your open connection: `DatabaseSync` (`node:sqlite`) or `Database` (better-sqlite3, `bun:sqlite`). */
        readonly database: SqliteDatabase
        readonly path?: never
      }
  )

const where = 'sqliteStore'

/**
 * A durable store in one SQLite file, for one machine: any number of processes may share the file. It creates its
 * tables when it is made.
 *
 * With `path` the store has a connection of its own (write-ahead log, every commit synced to the disk). With
 * `database` it shares yours: its calls wait while a transaction of yours is open on it, so that your rollback
 * never undoes a claim; only `completeIn(tx)` joins a transaction.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind, or the runtime
 * has no SQLite of its own for `path`
 * @throws WebhookInboxError `ERR_STORE_SETUP` when the database cannot hold the tables
 */
export function sqliteStore(options: SqliteStoreOptions): Store {
  const { database, isOwn, table, busyTimeoutMs, now } = readOptions(options)
  const connection = connectionTo(database)
  const tables = tablesOf(table)
  const claim = createClaim(tables)
  const settling = createSettling(tables)
  const take = createTake(tables)
  const operator = createOperator(tables)
  const readStoreId = statement(`SELECT store_id FROM ${tables.meta}`)
  const line = createLine(busyTimeoutMs)
  let isSetUp = false
  let isConfigured = false
  let closed = false
  let storeId: string | undefined
  const watchers = new Set<() => void>()

  // Other processes on the file find their work by asking.
  function tellWatchers(): void {
    for (const onWork of watchers) onWork()
  }

  function setUp(): void {
    if (isOwn && !isConfigured) {
      connection.run('PRAGMA busy_timeout = 0')
      connection.run('PRAGMA journal_mode = WAL')
      // NORMAL would lose the last commits when the power fails: deliveries that were answered with 2xx.
      connection.run('PRAGMA synchronous = FULL')
      isConfigured = true
    }
    if (!isSetUp) setUpSchema(connection, tables)
    isSetUp = true
  }

  function onConnection<T>(work: () => T): T {
    if (isOwn) return work()
    if (connection.inTransaction()) throw inForeignTransaction
    return withoutBlocking(connection, work)
  }

  function read<T>(work: (nowMs: number) => T): Promise<T> {
    return line.run(() =>
      onConnection(() => {
        setUp()
        return work(clock())
      }),
    )
  }

  const write = createTogether(connection, read)

  function clock(): number {
    return readClock(where, now)
  }

  /** Runs work inside the caller's transaction: on their connection, at once, before anything is awaited. */
  function join<T>(tx: unknown, work: (joined: Connection, nowMs: number) => T): Promise<T> {
    return createLine(busyTimeoutMs).run(() => {
      if (closed) throw storeUnavailable('The SQLite store is closed.')
      const joined = transactionOf(tx, database)
      try {
        return withoutBlocking(joined, () => {
          checkSameStore(joined)
          return inSavepoint(joined, () => work(joined, clock()))
        })
      } catch (error) {
        if (!isStaleSnapshot(error)) throw error
        throw storeUnavailable(
          'Another connection wrote after your transaction had begun to read. Begin it with BEGIN IMMEDIATE.',
          error,
        )
      }
    })
  }

  function checkSameStore(joined: Connection): void {
    storeId ??= readId(connection)
    let found: string | undefined
    try {
      found = joined === connection ? storeId : readId(joined)
    } catch (error) {
      if (!isStatementError(error)) throw error
    }
    if (found === undefined || found !== storeId) {
      throw new WebhookInboxError(
        'ERR_TRANSACTION',
        `completeIn(tx): that connection is on another database, without the table "${table}" of this store. Run the transaction on the file that the store was made with.`,
      )
    }
  }

  function readId(from: Connection): string | undefined {
    const row = from.rows(readStoreId, {})[0]
    return row === undefined ? undefined : text(row, 'store_id')
  }

  try {
    onConnection(setUp)
  } catch (error) {
    // A busy file is no reason to fail a start: the first call does it.
    if (!isBusy(error)) {
      if (isOwn) database.close()
      throw setupError(error)
    }
  }

  return Object.freeze({
    name: 'sqlite',
    async claim(entries) {
      const asked = entries.map((entry) => ({ ...entry, ...copyOfPayload(entry) }))
      const results = await read((nowMs) => claim(connection, asked, nowMs))
      if (results.some(({ status }) => status === 'pending')) tellWatchers()
      return results
    },
    renew: (hold, leaseMs) => write((nowMs) => settling.renew(connection, hold, leaseMs, nowMs)),
    async complete(hold, { result, ...rest }, tx) {
      const settled = { ...rest, ...(result === undefined ? {} : { result: result.slice() }) }
      return tx === undefined
        ? write((nowMs) => settling.complete(connection, hold, settled, nowMs))
        : join(tx, (joined, nowMs) => settling.complete(joined, hold, settled, nowMs))
    },
    async fail(hold, options, tx) {
      const failure = { ...options, ...copyOfPayload(options) }
      return tx === undefined
        ? write((nowMs) => settling.fail(connection, hold, failure, nowMs))
        : join(tx, (joined, nowMs) => settling.fail(joined, hold, failure, nowMs))
    },
    async release(hold) {
      const answer = await write((nowMs) => settling.release(connection, hold, nowMs))
      tellWatchers()
      return answer
    },
    abandon: (key, token) => write((nowMs) => settling.abandon(connection, key, token, nowMs)),
    take: (wanted) => write((nowMs) => take(connection, wanted, nowMs)),
    get: (key) => read((nowMs) => operator.get(connection, key, nowMs)),
    list: (query = {}) => read((nowMs) => operator.list(connection, query, nowMs)),
    stats: () => read((nowMs) => operator.stats(connection, nowMs)),
    latest: (entry, tx) =>
      tx === undefined
        ? write((nowMs) => operator.latest(connection, entry, nowMs))
        : join(tx, (joined, nowMs) => operator.latest(joined, entry, nowMs)),

    async watch(onWork) {
      // One function may be watching twice: each watch is its own.
      const watcher = (): void => onWork()
      watchers.add(watcher)
      return { reach: 'instance', close: async () => void watchers.delete(watcher) }
    },

    async retry(key) {
      const answer = await write((nowMs) => operator.retry(connection, key, nowMs))
      if (answer === 'pending') tellWatchers()
      return answer
    },
    purge: (limit) => write((nowMs) => operator.purge(connection, limit, nowMs)),
    setup: () => read(() => {}),

    async close() {
      if (closed) return
      closed = true
      line.close()
      if (isOwn) database.close()
    },
  } satisfies Store)
}

// A call may wait for a lock: what the caller does to its buffer meanwhile is no change of the record.
function copyOfPayload({ payload }: { readonly payload?: StoredPayload }): {
  readonly payload?: StoredPayload
} {
  if (payload === undefined) return {}
  return { payload: { body: payload.body.slice(), headers: { ...payload.headers } } }
}

function transactionOf(tx: unknown, database: SqliteDatabase): Connection {
  if (!isSqliteDatabase(tx)) {
    throw new WebhookInboxError(
      'ERR_TRANSACTION',
      'completeIn(tx): pass the SQLite connection on which your transaction is open (of node:sqlite, better-sqlite3 or bun:sqlite), not a wrapper or a statement.',
    )
  }
  // Two copies of SQLite in one process do not see each other's locks, and break the file.
  if (tx !== database && tx.prepare !== database.prepare) {
    throw new WebhookInboxError(
      'ERR_TRANSACTION',
      'completeIn(tx): that connection belongs to another SQLite library than the one of the store. One process must open a file with one library: make the store with sqliteStore({ database }) on a connection of yours.',
    )
  }
  const joined = connectionTo(tx)
  if (joined.inTransaction()) return joined
  throw new WebhookInboxError(
    'ERR_TRANSACTION',
    `completeIn(tx): no transaction is open on that connection. Begin one first: db.exec('BEGIN IMMEDIATE'), then your changes, await webhook.completeIn(db), db.exec('COMMIT').`,
  )
}

const readBusyTimeout = statement('PRAGMA busy_timeout')

// SQLite's own waiting blocks the event loop, for five seconds by default in better-sqlite3: ours does not.
function withoutBlocking<T>(connection: Connection, work: () => T): T {
  const row = connection.rows(readBusyTimeout, {})[0]
  const timeoutMs = row === undefined ? 0 : integer(row, 'timeout')
  if (timeoutMs === 0) return work()
  connection.run('PRAGMA busy_timeout = 0')
  try {
    return work()
  } finally {
    connection.run(`PRAGMA busy_timeout = ${timeoutMs}`)
  }
}

function setupError(error: unknown): unknown {
  if (error instanceof WebhookInboxError) return error
  const reason = error instanceof Error ? error.message : 'unknown error'
  return new WebhookInboxError(
    'ERR_STORE_SETUP',
    `${where}: the database cannot hold the store's tables: ${reason}.`,
    { cause: error },
  )
}

function readOptions(options: SqliteStoreOptions) {
  if (typeof options !== 'object' || options === null) {
    throw optionError(`${where}: pass an object: sqliteStore({ path: 'inbox.db' }).`)
  }
  rejectUnknownOptions(where, options, ['path', 'database', 'table', 'busyTimeoutMs', 'now'])
  const { table = 'webhook_inbox', busyTimeoutMs = 1500, now = Date.now } = options
  if (
    typeof table !== 'string' ||
    !/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(table) ||
    /^sqlite_/i.test(table)
  ) {
    throw optionError(
      `${where}: "table" must be a name of at most 63 letters, digits and "_" that does not begin with a digit or "sqlite_", for instance 'webhook_inbox'.`,
    )
  }
  if (!Number.isInteger(busyTimeoutMs) || busyTimeoutMs < 1 || busyTimeoutMs > 60_000) {
    throw optionError(
      `${where}: "busyTimeoutMs" must be a whole number of milliseconds from 1 to 60000, for instance 1500.`,
    )
  }
  if (typeof now !== 'function') {
    throw optionError(`${where}: "now" must be a function that returns epoch milliseconds.`)
  }
  return Object.freeze({ ...databaseOf(options), table, busyTimeoutMs, now })
}

function databaseOf({ path, database }: SqliteStoreOptions): {
  readonly database: SqliteDatabase
  readonly isOwn: boolean
} {
  if (path !== undefined && database !== undefined)
    throw optionError(`${where}: pass "path" or "database", not both.`)
  if (database !== undefined) {
    if (isSqliteDatabase(database)) return { database, isOwn: false }
    throw optionError(
      `${where}: "database" must be an open SQLite connection: DatabaseSync of node:sqlite, or Database of better-sqlite3 or bun:sqlite. To open a file, pass "path".`,
    )
  }
  if (typeof path !== 'string' || path.trim() === '') {
    throw optionError(
      `${where}: pass "path", the file to keep the deliveries in, for instance sqliteStore({ path: 'inbox.db' }), or "database", an open connection.`,
    )
  }
  return { database: openDatabase(where, path), isOwn: true }
}
