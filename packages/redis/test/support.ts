import type { ClaimEntry, ClaimResult, DeliveryKey, Hold, Store } from '@webhook-inbox/core'
import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'

let prefixes = 0

/** A prefix of its own for each store of a test. */
export function newPrefix(): string {
  prefixes += 1
  return `test-${process.pid}-${prefixes}`
}

interface ClientOptions {
  readonly keyPrefix?: string
  readonly enableAutoPipelining?: boolean
  readonly enableOfflineQueue?: boolean
  readonly autoResendUnfulfilledCommands?: boolean
  readonly maxRetriesPerRequest?: number | null
  readonly lazyConnect?: boolean
  readonly enableReadyCheck?: boolean
  readonly username?: string
  readonly password?: string
}

type Address = { readonly host: string; readonly port: number }

/** The two majors of ioredis. Their clients say nothing on the console when a server is gone. */
export const majors = [
  {
    name: 'ioredis 5',
    open: (url: string, options: ClientOptions = {}) =>
      new Redis5(url, { retryStrategy: () => 50, ...options }).on('error', () => {}),
    openCluster: (addresses: readonly Address[], options: ClientOptions = {}) =>
      new Cluster5([...addresses], { ...quick, ...options }).on('error', () => {}),
  },
  {
    name: 'ioredis 6',
    open: (url: string, options: ClientOptions = {}) => openRedis(url, options),
    openCluster: (addresses: readonly Address[], options: ClientOptions = {}) =>
      openCluster(addresses, options),
  },
] as const

const quick = { clusterRetryStrategy: () => 50 }

export function openRedis(url: string, options: ClientOptions = {}): Redis6 {
  return new Redis6(url, { retryStrategy: () => 50, ...options }).on('error', () => {})
}

export function openCluster(addresses: readonly Address[], options: ClientOptions = {}): Cluster6 {
  return new Cluster6([...addresses], { ...quick, ...options }).on('error', () => {})
}

export function openSentinel({
  sentinels,
  name,
}: {
  readonly sentinels: Address[]
  readonly name: string
}): Redis6 {
  return new Redis6({
    sentinels,
    name,
    retryStrategy: () => 50,
    sentinelRetryStrategy: () => 50,
  }).on('error', () => {})
}

/** Counts the changes of keys under a prefix, as a server tells them. */
export async function watchWrites(
  urls: readonly string[],
  prefix: string,
): Promise<{
  count(): Promise<number>
  /** Does not count what is done meanwhile. */
  except(work: () => Promise<void>): Promise<void>
  close(): void
}> {
  let writes = 0
  const watchers = await Promise.all(
    urls.map(async (url) => {
      const watcher = openRedis(url)
      await watcher.config('SET', 'notify-keyspace-events', 'KA')
      await watcher.psubscribe(`__keyspace@0__:{${prefix}:*`)
      watcher.on('pmessage', () => {
        writes += 1
      })
      return watcher
    }),
  )
  async function count(): Promise<number> {
    // What was told before the answer to a ping has come before it.
    await Promise.all(watchers.map((watcher) => watcher.ping()))
    return writes
  }
  return {
    count,
    async except(work) {
      const before = await count()
      await work()
      await count()
      writes = before
    },
    close() {
      for (const watcher of watchers) watcher.disconnect()
    },
  }
}

export function keyOf(deliveryId: string): DeliveryKey {
  return { provider: 'github', endpoint: '', deliveryId }
}

export function entryOf(deliveryId: string, overrides: Partial<ClaimEntry> = {}): ClaimEntry {
  return {
    key: keyOf(deliveryId),
    token: crypto.randomUUID().replaceAll('-', ''),
    leaseMs: 30_000,
    mode: 'inline',
    unfinishedRetentionMs: 3_600_000,
    ...overrides,
  }
}

export async function claimOne(store: Store, entry: ClaimEntry): Promise<ClaimResult> {
  const [result] = await store.claim([entry])
  if (result === undefined) throw new Error('The store answered nothing.')
  return result
}

export interface Grant {
  readonly hold: Hold
  readonly attempt: number
  readonly fence: number
}

export async function grantOne(store: Store, entry: ClaimEntry): Promise<Grant> {
  const result = await claimOne(store, entry)
  if (result.status !== 'claimed') throw new Error(`The store answered "${result.status}".`)
  const { fence, attempt } = result
  return { hold: { key: entry.key, token: entry.token, fence }, attempt, fence }
}

/** The error that a call has to reject with. */
export async function errorOf(call: Promise<unknown>): Promise<Error & { readonly code: unknown }> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof Error && 'code' in error) return Object.assign(error, { code: error.code })
  throw new Error('The call had to reject with an error of the store.', { cause: error })
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
