import {
  optionError,
  rejectUnknownOptions,
  type Store,
  WebhookInboxError,
} from '@webhook-inbox/core'
import { createClaim } from './claim.ts'
import { isRedisClient, type RedisClient, whatInstead } from './client.ts'
import { connect, type ReplicaWait } from './connection.ts'
import { asStoreError } from './errors.ts'
import { createHints } from './hints.ts'
import { shardsOf } from './key.ts'
import { createLatest } from './latest.ts'
import { createLines } from './lines.ts'
import { createOperator } from './operator.ts'
import { createSettling } from './settle.ts'
import { createSetup, type RedisWarning, warnProcess } from './setup.ts'
import { createTake } from './take.ts'

export type { RedisWarning } from './setup.ts'

export interface RedisStoreOptions {
  /** Your ioredis client: `Redis` (also with Sentinel) or `Cluster`. `close()` leaves it open. */
  readonly client: RedisClient
  /**
   * What the name of every key begins with, inside the braces of a hash tag: `{webhook-inbox:3}:…`. Two stores with
   * one prefix are one store. @default 'webhook-inbox'
   */
  readonly prefix?: string
  /**
   * Over how many hash slots the records are spread, so that a cluster shares them out: 1 to 256. Few make larger
   * batches; a cluster wants about five for each primary. It is fixed for the life of the data: with another number no
   * record would be found again, and `setup()` refuses it. @default 4
   */
  readonly shards?: number
  /** How long one call may take before it throws `ERR_STORE_UNAVAILABLE`. Keep it below the inbox's `storeTimeoutMs`. @default 1500 */
  readonly timeoutMs?: number
  /**
   * A claim is granted only when this many replicas have confirmed it in time; otherwise it is unavailable. It makes a
   * claim that is lost by a failover rare, not impossible.
   */
  readonly waitForReplicas?: ReplicaWait
  /** Hears what `setup()` found that may lose records. @default process.emitWarning */
  readonly onWarning?: (warning: RedisWarning) => void
}

const where = 'redisStore'

/**
 * A store in Redis 6.2 or newer, or Valkey, shared by any number of processes: standalone, Sentinel or Cluster. Each
 * call is one script, decided by the clock of Redis.
 *
 * It is as durable as your Redis is: call `setup()` at the start, which checks that and says what would be lost.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function redisStore(options: RedisStoreOptions): Store {
  const { client, prefix, shards, timeoutMs, waitForReplicas, onWarning } = readOptions(options)
  const connection = connect({
    client,
    shards: shardsOf(prefix, shards),
    timeoutMs,
    waitForReplicas,
  })
  const lines = createLines(connection, ({ hold }) => settling.release(hold))
  const claim = createClaim(connection, lines)
  const settling = createSettling(connection, lines)
  const take = createTake(connection, lines)
  const operator = createOperator(connection, lines)
  const hints = createHints(connection, prefix)
  const latest = createLatest(connection)

  async function call<T>(what: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw asStoreError(what, error)
    }
  }

  const store: Store = {
    name: 'redis',
    claim: (entries) =>
      call('claim', async () => {
        const [first] = entries
        const isOne = first !== undefined && entries.length === 1
        // One is the usual case.
        const results = isOne ? [await claim(first)] : await Promise.all(entries.map(claim))
        if (results.some(({ status }) => status === 'pending')) hints.tell()
        return results
      }),
    renew: (hold, leaseMs) => call('renew', () => settling.renew(hold, leaseMs)),
    complete: (hold, settled, tx) =>
      call('complete', async () => {
        refuseTransaction(tx)
        return settling.complete(hold, settled)
      }),
    fail: (hold, failure, tx) =>
      call('fail', async () => {
        refuseTransaction(tx)
        return settling.fail(hold, failure)
      }),
    release: (hold) =>
      call('release', async () => {
        const answer = await settling.release(hold)
        hints.tell()
        return answer
      }),
    abandon: (key, token) => call('abandon', () => settling.abandon(key, token)),
    take: (wanted) => call('take', () => take(wanted)),
    get: (key) => call('get', () => operator.get(key)),
    list: (query = {}) => call('list', () => operator.list(query)),
    stats: () => call('stats', () => operator.stats()),
    latest: (entry, tx) =>
      call('latest', async () => {
        refuseTransaction(tx)
        return latest(entry)
      }),
    watch: (onWork) => hints.watch(onWork),
    retry: (key) =>
      call('retry', async () => {
        const answer = await operator.retry(key)
        if (answer === 'pending') hints.tell()
        return answer
      }),
    purge: (limit) => call('purge', () => operator.purge(limit)),
    setup: () => call('setup', () => setUp()),
    async close() {
      hints.close()
      connection.close()
    },
  }
  const setUp = createSetup({ connection, store, prefix, onWarning })
  return Object.freeze(store)
}

function refuseTransaction(tx: unknown): void {
  if (tx === undefined) return
  throw new WebhookInboxError(
    'ERR_TRANSACTION',
    'completeIn(tx): Redis has no part in a transaction of your database. To complete a delivery together with your changes, keep the deliveries in that database: postgresStore() or sqliteStore(). With redisStore let the handler return, and make its effect idempotent by webhook.idempotencyKey().',
  )
}

function readOptions(options: RedisStoreOptions) {
  if (typeof options !== 'object' || options === null)
    throw optionError(`${where}: pass an object: redisStore({ client: new Redis() }).`)
  rejectUnknownOptions(where, options, [
    'client',
    'prefix',
    'shards',
    'timeoutMs',
    'waitForReplicas',
    'onWarning',
  ])
  const { client, prefix = 'webhook-inbox', shards = 4, timeoutMs = 1500 } = options
  const { waitForReplicas, onWarning = warnProcess } = options
  if (!isRedisClient(client)) throw optionError(`${where}: ${whatInstead(client)}`)
  if (typeof prefix !== 'string' || !/^[\w:.-]{1,64}$/.test(prefix))
    throw optionError(
      `${where}: "prefix" must be 1 to 64 letters, digits, "_", "-", "." or ":", for instance 'webhook-inbox'.`,
    )
  if (!isWhole(shards, 256))
    throw optionError(`${where}: "shards" must be a whole number from 1 to 256, for instance 4.`)
  if (!isWhole(timeoutMs, 60_000))
    throw optionError(
      `${where}: "timeoutMs" must be a whole number of milliseconds from 1 to 60000, for instance 1500.`,
    )
  if (typeof onWarning !== 'function')
    throw optionError(`${where}: "onWarning" must be a function.`)
  return Object.freeze({
    client,
    prefix,
    shards,
    timeoutMs,
    waitForReplicas: readReplicaWait(waitForReplicas, timeoutMs),
    onWarning,
  })
}

function readReplicaWait(value: unknown, timeoutMs: number): ReplicaWait | undefined {
  if (value === undefined) return undefined
  const fix = `for instance { count: 1, timeoutMs: 200 }`
  if (typeof value !== 'object' || value === null)
    throw optionError(`${where}: "waitForReplicas" must be an object, ${fix}.`)
  rejectUnknownOptions(`${where}: "waitForReplicas"`, value, ['count', 'timeoutMs'])
  const count: unknown = Reflect.get(value, 'count')
  const waitMs: unknown = Reflect.get(value, 'timeoutMs')
  if (!isWhole(count, 16))
    throw optionError(
      `${where}: "waitForReplicas.count" must be a whole number from 1 to 16, ${fix}.`,
    )
  if (!isWhole(waitMs, timeoutMs - 1))
    throw optionError(
      `${where}: "waitForReplicas.timeoutMs" must be a whole number of milliseconds below "timeoutMs" (${timeoutMs}), ${fix}.`,
    )
  return Object.freeze({ count, timeoutMs: waitMs })
}

function isWhole(value: unknown, most: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= most
}
