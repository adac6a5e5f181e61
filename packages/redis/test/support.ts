import type { ClaimEntry, ClaimResult, DeliveryKey, Hold, Store } from '@webhook-inbox/core'
import { Redis as Redis6 } from 'ioredis'
import { Redis as Redis5 } from 'ioredis5'

let prefixes = 0

/** A prefix of its own for each store of a test. */
export function newPrefix(): string {
  prefixes += 1
  return `test-${process.pid}-${prefixes}`
}

/** The two majors of ioredis. */
export const clients = {
  'ioredis 5': (url: string, options: Options = {}) => new Redis5(url, options),
  'ioredis 6': (url: string, options: Options = {}) => new Redis6(url, options),
}

interface Options {
  readonly enableAutoPipelining?: boolean
  readonly enableOfflineQueue?: boolean
  readonly maxRetriesPerRequest?: number
  readonly keyPrefix?: string
  readonly retryStrategy?: () => number
}

/** A client of ioredis 6 that says nothing on the console when its server is gone. */
export function clientOf(url: string, options: Options = {}): Redis6 {
  const client = new Redis6(url, { retryStrategy: () => 50, ...options })
  client.on('error', () => {})
  return client
}

/** How many write commands a server has counted. */
export async function writesOf(client: {
  info(section: string): Promise<string>
}): Promise<number> {
  const text = await client.info('persistence')
  const counted = /rdb_changes_since_last_save:(\d+)/.exec(text)?.[1]
  if (counted === undefined) throw new Error('The server counts no changes.')
  return Number(counted)
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

export async function grantOne(
  store: Store,
  entry: ClaimEntry,
): Promise<Hold & { readonly attempt: number }> {
  const result = await claimOne(store, entry)
  if (result.status !== 'claimed') throw new Error(`The store answered "${result.status}".`)
  return { key: entry.key, token: entry.token, fence: result.fence, attempt: result.attempt }
}
