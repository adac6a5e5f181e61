import type { ClaimEntry, ClaimResult, DeliveryKey, Hold, Store } from '@webhook-inbox/core'
import type { Runner } from '@webhook-inbox/testkit'
import { Cluster as Cluster6, Redis as Redis6 } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { describe, expect, it } from 'vitest'

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
): Promise<{ count(): Promise<number>; close(): void }> {
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
  return {
    async count() {
      // What was told before the answer to a ping has come before it.
      await Promise.all(watchers.map((watcher) => watcher.ping()))
      return writes
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

/** Milliseconds of a tick of the suites: the clock of Redis cannot be moved, so they wait. */
export const tickMs = 100

/**
 * A runner whose tests wait side by side. One that fails while the machine was held up, so that leases ended
 * under it, has shown nothing and is run again.
 */
export const waitingRunner: Runner = {
  describe,
  expect,
  it: (name, body) =>
    it.concurrent(name, async () => {
      for (let runs = 1; ; runs++) {
        const watch = watchStandstill()
        try {
          return await body()
        } catch (error) {
          if (watch.longestMs() < tickMs / 3 || runs === 5) throw error
        } finally {
          watch.stop()
        }
      }
    }),
}

/** Measures the longest time in which this process got no turn. */
function watchStandstill(): { longestMs(): number; stop(): void } {
  const everyMs = 10
  let lastMs = performance.now()
  let longestMs = 0
  const look = () => {
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - lastMs - everyMs)
    lastMs = nowMs
  }
  const timer = setInterval(look, everyMs)
  return {
    longestMs() {
      look()
      return longestMs
    },
    stop: () => clearInterval(timer),
  }
}
