/** The caller's database client: what is asked of it, and how a statement is sent through it within a deadline. */
import { optionError, storeUnavailable, WebhookInboxError } from '@webhook-inbox/core'

/** What a client answers. `pg`, PGlite and most wrappers give more; only the rows are read. */
export interface QueryAnswer {
  readonly rows: readonly unknown[]
}

/** A value of a statement: text, also for numbers and arrays, or bytes. */
export type SqlValue = string | Uint8Array | null

/**
 * The part of a Postgres client that the store uses: one statement with `$1`, `$2` … and its values. A `pg` Pool, a
 * `pg` Client and PGlite fit as they are.
 */
export interface PostgresClient {
  query(text: string, values?: SqlValue[]): Promise<QueryAnswer>
}

/** One row as the driver gave it, by column name. */
export type SqlRow = Readonly<Record<string, unknown>>

/** Sends one statement. */
export type Send = (text: string, values?: readonly SqlValue[]) => Promise<readonly SqlRow[]>

/** A connection that was taken out of a `pg` Pool. */
interface PooledClient extends PostgresClient {
  release(error?: boolean | Error): void
  on(event: 'error', listener: () => void): unknown
}

/** What a `pg` Pool can do beyond one query. */
interface Pool extends PostgresClient {
  connect(): Promise<PooledClient>
  readonly totalCount: number
  readonly options?: { readonly connectionTimeoutMillis?: number | undefined }
}

export function isClient(value: unknown): value is PostgresClient {
  return (
    (typeof value === 'object' || typeof value === 'function') &&
    value !== null &&
    'query' in value &&
    typeof value.query === 'function'
  )
}

export function isPool(client: PostgresClient): client is Pool {
  return 'totalCount' in client && 'connect' in client && typeof client.connect === 'function'
}

/** Refuses what cannot be a client, with the fix in the message. */
export function checkClient(where: string, value: unknown): asserts value is PostgresClient {
  if (value === undefined || value === null) {
    throw optionError(
      `${where}: "pool" is missing. Pass your client, for instance postgresStore({ pool: new pg.Pool({ connectionString: process.env.DATABASE_URL }) }).`,
    )
  }
  if (typeof value === 'string') {
    throw optionError(
      `${where}: "pool" is a text. Pass a client, for instance new pg.Pool({ connectionString }), not a connection string.`,
    )
  }
  if (!isClient(value)) {
    throw optionError(
      `${where}: "pool" has no method query(text, values). Pass a pg Pool or PGlite as it is; for postgres.js and others see "Other clients" in the README of @webhook-inbox/postgres.`,
    )
  }
}

/** Says that a statement took longer than it was given. */
const late: unique symbol = Symbol('late')

/**
 * Sends statements through the caller's client and waits for each at most `timeoutMs`. A statement that waits for a
 * connection longer than that is never sent. The connection of one that stays unanswered is closed: it may lead
 * nowhere, and a pool keeps such connections for ever.
 * Rejects with what the driver says, or `ERR_STORE_UNAVAILABLE` when time is over.
 */
export function createSend(client: PostgresClient, timeoutMs: number): Send {
  return async (text, values = []) => {
    const answer = isPool(client)
      ? await throughPool(client, text, [...values], timeoutMs)
      : await within(client.query(text, [...values]), timeoutMs)
    if (answer === late) throw unanswered(timeoutMs)
    return rowsOf(answer)
  }
}

async function throughPool(
  pool: Pool,
  text: string,
  values: SqlValue[],
  timeoutMs: number,
): Promise<QueryAnswer | typeof late> {
  const deadlineMs = performance.now() + timeoutMs
  const connecting = pool.connect()
  const connection = await within(connecting, timeoutMs)
  if (connection === late) {
    connecting.then(
      (tooLate) => tooLate.release(),
      () => {},
    )
    throw storeUnavailable(
      `No database connection was free within ${timeoutMs} ms; the statement was not sent.`,
    )
  }
  listenForGood(connection)
  let broken: unknown
  try {
    const answer = await within(
      connection.query(text, values),
      Math.max(1, deadlineMs - performance.now()),
    )
    if (answer === late) broken = answer
    return answer
  } catch (error) {
    // An error of the server has a SQLSTATE, and the connection goes on.
    if (sqlStateOf(error) === undefined) broken = error
    throw error
  } finally {
    connection.release(broken !== undefined)
  }
}

const heard = new WeakSet<PooledClient>()

// The error of a broken connection comes as an event too, also when a pool that is being ended has let go of it; unheard
// it would end the process. The pool tells its own listeners all the same.
function listenForGood(connection: PooledClient): void {
  if (heard.has(connection)) return
  heard.add(connection)
  connection.on('error', () => {})
}

async function within<T>(asked: Promise<T>, timeoutMs: number): Promise<T | typeof late> {
  // Query builders answer what looks like a promise and sends the statement at every `then`: ask it once.
  const work = Promise.resolve(asked)
  let timer: ReturnType<typeof setTimeout> | undefined
  const expiry = new Promise<typeof late>((resolve) => {
    timer = setTimeout(() => resolve(late), timeoutMs)
  })
  // What fails after the deadline has nobody to tell.
  work.catch(() => {})
  try {
    return await Promise.race([work, expiry])
  } finally {
    clearTimeout(timer)
  }
}

function unanswered(timeoutMs: number): WebhookInboxError {
  return storeUnavailable(`The database did not answer within ${timeoutMs} ms.`)
}

function rowsOf(answer: QueryAnswer): readonly SqlRow[] {
  if (typeof answer === 'object' && answer !== null && Array.isArray(answer.rows)) {
    const rows: readonly unknown[] = answer.rows
    if (rows.every(isRow)) return rows
  }
  throw new TypeError(
    'The client answered a statement without { rows: [{ column: value }] }. See "Other clients" in the README of @webhook-inbox/postgres.',
  )
}

function isRow(value: unknown): value is SqlRow {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The five characters by which Postgres names an error. */
export function sqlStateOf(error: unknown): string | undefined {
  for (let cause = error, depth = 0; depth < 4; depth++) {
    if (typeof cause !== 'object' || cause === null) return undefined
    if ('code' in cause && typeof cause.code === 'string' && /^[0-9A-Z]{5}$/.test(cause.code))
      return cause.code
    // Query builders wrap the driver's error.
    cause = 'cause' in cause ? cause.cause : undefined
  }
  return undefined
}

/** Whether an error says that two transactions met: nothing was done, and once more may do. */
export function isLostRace(error: unknown): boolean {
  const state = sqlStateOf(error)
  return state === '40001' || state === '40P01'
}

/** An error of the driver as one of the store's. */
export function asStoreError(error: unknown, tableName: string): WebhookInboxError {
  if (error instanceof WebhookInboxError) return error
  const state = sqlStateOf(error)
  const reason = error instanceof Error && error.message !== '' ? error.message : 'unknown error'
  if (state !== undefined && schemaStates.includes(state)) {
    return new WebhookInboxError(
      'ERR_STORE_SETUP',
      `The database lacks the tables of "${tableName}", or has them in another version: ${reason}. Call await store.setup() once at start, or run what schemaSql() prints.`,
      { cause: error },
    )
  }
  if (state === '42501') {
    return new WebhookInboxError(
      'ERR_STORE_SETUP',
      `The database role may not use the tables of "${tableName}": ${reason}. Grant it USAGE on the schema, SELECT, INSERT, UPDATE and DELETE on the tables, and USAGE on the sequence.`,
      { cause: error },
    )
  }
  return storeUnavailable(`The Postgres store could not answer: ${reason}.`, error)
}

// Undefined table, schema, column, function, object.
const schemaStates: readonly string[] = ['42P01', '3F000', '42703', '42883', '42704']
