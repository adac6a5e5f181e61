import {
  type ClaimEntry,
  createBatch,
  type Hold,
  hasCode,
  optionError,
  rejectUnknownOptions,
  type Store,
  type StoredPayload,
  storeUnavailable,
  WebhookInboxError,
} from '@webhook-inbox/core'
import {
  type AskedClaim,
  answerCopy,
  type ClaimAnswer,
  claimKey,
  claimSize,
  createClaim,
} from './claim.ts'
import {
  asStoreError,
  checkClient,
  createSend,
  isClient,
  isLostRace,
  isPool,
  type PostgresClient,
  type Send,
  sqlStateOf,
} from './client.ts'
import { keyText } from './encode.ts'
import { createHints } from './hints.ts'
import { createOperator } from './operator.ts'
import { migrate, schemaText, tablesOf } from './schema.ts'
import { checkPool, checkServer, checkStore } from './self-check.ts'
import { type Busy, createSettlings, type Settling } from './settle.ts'
import { createTake } from './take.ts'

interface NameOptions {
  /** Name of the main table; the others add to it. Letters, digits and `_`. @default 'webhook_inbox' */
  readonly table?: string
  /** The schema that holds them. @default 'public' */
  readonly schema?: string
}

export interface PostgresStoreOptions extends NameOptions {
  /**
   * Your client: a `pg` Pool, PGlite, or anything with `query(text, values)`. The store closes it never. A `pg` Pool
   * without a listener for `error` gets one, so that the death of an idle connection does not end the process.
   */
  readonly pool: PostgresClient
  /**
   * How long a call may take, waiting for a connection and for its batch included, before it throws
   * `ERR_STORE_UNAVAILABLE`. In milliseconds. @default 2000
   */
  readonly timeoutMs?: number
  /** Hears what `setup()` finds to be risky. @default console.warn */
  readonly onWarning?: (message: string) => void
}

const where = 'postgresStore'

/**
 * A durable store in PostgreSQL 13 or newer, for any number of processes. Claims, renewals and settlements that
 * arrive together travel in one statement. Call `setup()` once at start: it creates the tables and checks the server.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function postgresStore(options: PostgresStoreOptions): Store {
  const { pool, table, schema, timeoutMs, onWarning } = readOptions(options)
  const tables = tablesOf(schema, table)
  const claims = createClaim(tables)
  const settlings = createSettlings(tables)
  const take = createTake(tables)
  const operator = createOperator(tables)
  const stopListening = listenToIdleErrors(pool)
  let closed = false

  /** Sends statements that are transactions of their own; one that met another is sent once more, in the same time. */
  function sendUntil(endOf: () => number): Send {
    return async (text, values) => {
      if (closed) throw storeUnavailable('The Postgres store is closed.')
      const endsAtMs = endOf()
      const sendOnce: Send = (...statement) => {
        const leftMs = Math.max(1, Math.ceil(endsAtMs - performance.now()))
        return createSend(pool, leftMs)(...statement)
      }
      try {
        return await sendOnce(text, values).catch((error: unknown) => {
          if (!isLostRace(error)) throw error
          return sendOnce(text, values)
        })
      } catch (error) {
        throw asBatchError(error)
      }
    }
  }

  const send = sendUntil(() => performance.now() + timeoutMs)

  // A batch is halved for an error of its values alone: whatever else is wrong is wrong with all of it.
  function asBatchError(error: unknown): unknown {
    return sqlStateOf(error)?.startsWith('22') === true ? error : asStoreError(error, tables.name)
  }

  const claimOne = createBatch({
    timeoutMs,
    keyOf: claimKey,
    sizeOf: claimSize,
    merge: answerCopy,
    send: (entries: readonly AskedClaim[]) => claims(send, entries),
  })

  // One batch at a time: two that are under way may arrive in either order, and lines keep that of receipt.
  const claimInLine = createBatch({
    timeoutMs,
    maxInFlight: 1,
    keyOf: claimKey,
    sizeOf: claimSize,
    merge: answerCopy,
    send: (entries: readonly AskedClaim[]) => claims(send, entries),
  })
  let lastRank = 0

  function claimLater(entry: ClaimEntry): Promise<ClaimAnswer> {
    const asked = { ...entry, ...copyOfPayload(entry) }
    if (entry.order === undefined) return claimOne(asked)
    lastRank = (lastRank + 1) % 2_000_000_000
    return claimInLine({ ...asked, rank: lastRank })
  }

  /** Settles in batches; what another transaction has locked is waited for alone. */
  function batched<Asked extends { readonly hold: Hold }, Result extends string>(
    { ask, wait }: Settling<Asked, Result>,
    sizeOf: (asked: Asked) => number,
  ): (asked: Asked) => Promise<Result> {
    const askOne = createBatch<Asked, Result | Busy>({
      timeoutMs,
      keyOf: ({ hold }) => keyText(hold.key),
      sizeOf,
      send: (asked) => ask(send, asked),
    })
    return async (asked) => {
      const endsAtMs = performance.now() + timeoutMs
      const answer = await told(askOne(asked))
      if (answer !== 'busy') return answer
      const sendInTime = sendUntil(() => endsAtMs)
      return told(wait(sendInTime, asked))
    }
  }

  const renew = batched(settlings.renew, () => 0)
  const complete = batched(settlings.complete, ({ options: { result } }) => result?.length ?? 0)
  const fail = batched(settlings.fail, ({ options: { payload } }) => payload?.body.length ?? 0)

  async function told<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer
    } catch (error) {
      throw asStoreError(error, tables.name)
    }
  }

  /** Works on the caller's client, in the caller's transaction. */
  async function join<Result>(tx: unknown, work: (send: Send) => Promise<Result>): Promise<Result> {
    const client = transactionOf(tx)
    const joined = createSend(client, timeoutMs)
    try {
      // Refused outside of a transaction block; inside it says nothing that the next statement would not.
      await joined(`LOCK TABLE ${tables.meta} IN ACCESS SHARE MODE`)
      return await work(joined)
    } catch (error) {
      throw transactionError(error, tables.name)
    }
  }

  const hints = createHints({ pool, tables, send })

  const store: Store = {
    name: 'postgres',

    async claim(entries) {
      const answers = await told(Promise.all(entries.map(claimLater)))
      if (entries.some(({ mode }) => mode === 'queued')) hints.tell()
      return answers.map(({ result }) => result)
    },

    renew: (hold, leaseMs) => renew({ hold, leaseMs }),

    async complete(hold, { result, ...rest }, tx) {
      const options = { ...rest, ...(result === undefined ? {} : { result: result.slice() }) }
      return tx === undefined
        ? complete({ hold, options })
        : join(tx, (joined) => settlings.complete.wait(joined, { hold, options }))
    },

    async fail(hold, failure, tx) {
      const options = { ...failure, ...copyOfPayload(failure) }
      return tx === undefined
        ? fail({ hold, options })
        : join(tx, (joined) => settlings.fail.wait(joined, { hold, options }))
    },

    async release(hold) {
      const answer = await told(settlings.release.wait(send, { hold }))
      hints.tell()
      return answer
    },
    abandon: (key, token) => told(settlings.abandon(send, key, token)),
    take: (wanted) => told(take(send, wanted)),
    get: (key) => told(operator.get(send, key)),
    list: (query = {}) => told(operator.list(send, query)),
    stats: () => told(operator.stats(send)),
    latest: (entry, tx) =>
      tx === undefined
        ? told(operator.latest(send, entry))
        : join(tx, (joined) => operator.latest(joined, entry)),
    watch: (onWork) => hints.watch(onWork),

    async retry(key) {
      const answer = await told(operator.retry(send, key))
      if (answer === 'pending') hints.tell()
      return answer
    },
    purge: (limit) => told(operator.purge(send, limit)),

    async setup() {
      await told(checkServer(send, timeoutMs, onWarning))
      checkPool(pool, timeoutMs, onWarning)
      await told(migrate(send, tables))
      await checkStore(store, send, tables)
    },

    async close() {
      closed = true
      stopListening()
      await hints.close()
    },
  }
  return Object.freeze(store)
}

/**
 * The SQL that creates the tables, for those who run their own migrations: one part for each version, each beginning
 * with `-- Version`. `setup()` then finds them and only checks.
 * @throws WebhookInboxError `ERR_OPTION` when a name is not one
 */
export function schemaSql(options: NameOptions = {}): string {
  rejectUnknownOptions('schemaSql', options, ['table', 'schema'])
  const { table = 'webhook_inbox', schema = 'public' } = options
  checkName('schemaSql', 'table', table)
  checkName('schemaSql', 'schema', schema)
  return schemaText(tablesOf(schema, table))
}

// A call waits for its batch: what the caller does to its buffer meanwhile is no change of the record.
function copyOfPayload({ payload }: { readonly payload?: StoredPayload }): {
  readonly payload?: StoredPayload
} {
  if (payload === undefined) return {}
  return { payload: { body: payload.body.slice(), headers: { ...payload.headers } } }
}

function listenToIdleErrors(pool: PostgresClient): () => void {
  if (!isPool(pool) || !isEmitter(pool) || pool.listenerCount('error') > 0) return () => {}
  const listener = () => {}
  pool.on('error', listener)
  return () => void pool.removeListener('error', listener)
}

interface Emitter {
  listenerCount(event: string): number
  on(event: string, listener: () => void): unknown
  removeListener(event: string, listener: () => void): unknown
}

function isEmitter(value: object): value is Emitter {
  return ['listenerCount', 'on', 'removeListener'].every(
    (name) => typeof Reflect.get(value, name) === 'function',
  )
}

function transactionOf(tx: unknown): PostgresClient {
  if (!isClient(tx)) {
    throw new WebhookInboxError(
      'ERR_TRANSACTION',
      'completeIn(tx): pass the client on which your transaction is open: the one of pool.connect() after its BEGIN, or the tx of PGlite. For other clients see "Other clients" in the README of @webhook-inbox/postgres.',
    )
  }
  if (isPool(tx)) {
    throw new WebhookInboxError(
      'ERR_TRANSACTION',
      'completeIn(tx): a pool has no transaction. Take a client with pool.connect(), begin on it, and pass that client.',
    )
  }
  return tx
}

function transactionError(error: unknown, tableName: string): unknown {
  // The caller's own retries look for these.
  if (isLostRace(error) || hasCode(error, 'ERR_STORE_UNAVAILABLE')) return error
  const state = sqlStateOf(error)
  if (state === '25P01') {
    return new WebhookInboxError(
      'ERR_TRANSACTION',
      'completeIn(tx): no transaction is open on that client. Send BEGIN first, then your changes, await webhook.completeIn(client), then COMMIT.',
      { cause: error },
    )
  }
  if (state === '25P02') {
    return new WebhookInboxError(
      'ERR_TRANSACTION',
      'completeIn(tx): your transaction has failed before and can only be rolled back.',
      { cause: error },
    )
  }
  if (state === '42P01' || state === '3F000') {
    return new WebhookInboxError(
      'ERR_TRANSACTION',
      `completeIn(tx): the database of that client has no tables ${tableName}. Run the transaction on the database of the store.`,
      { cause: error },
    )
  }
  return asStoreError(error, tableName)
}

function readOptions(options: PostgresStoreOptions) {
  if (typeof options !== 'object' || options === null)
    throw optionError(`${where}: pass an object: postgresStore({ pool }).`)
  if (isClient(options))
    throw optionError(`${where}: pass the client as an option: postgresStore({ pool }).`)
  rejectUnknownOptions(where, options, ['pool', 'table', 'schema', 'timeoutMs', 'onWarning'])
  const { pool, table = 'webhook_inbox', schema = 'public', timeoutMs = 2000 } = options
  const { onWarning = console.warn } = options
  checkClient(where, pool)
  checkName(where, 'table', table)
  checkName(where, 'schema', schema)
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > 600_000) {
    throw optionError(
      `${where}: "timeoutMs" must be a whole number of milliseconds from 1 to 600000, for instance 2000.`,
    )
  }
  if (typeof onWarning !== 'function')
    throw optionError(`${where}: "onWarning" must be a function that takes a message.`)
  return Object.freeze({ pool, table, schema, timeoutMs, onWarning })
}

function checkName(where: string, option: string, name: unknown): void {
  if (typeof name === 'string' && /^[A-Za-z_][A-Za-z0-9_]{0,44}$/.test(name)) return
  throw optionError(
    `${where}: "${option}" must be a name of at most 45 letters, digits and "_" that does not begin with a digit, for instance '${option === 'table' ? 'webhook_inbox' : 'public'}'.`,
  )
}
