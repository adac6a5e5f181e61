import { createHash } from 'node:crypto'
import type { DeliveryKey } from '@webhook-inbox/core'

/** Characters of the digest that ends the name of a record. Lua cuts it off by this length. */
export const idLength = 22

/** The names of one shard. They share a hash tag, so that a script may use all of them in a Redis Cluster. */
export interface Shard {
  readonly number: number
  /** What the name of every key of the shard begins with. */
  readonly base: string
  /** The keys that every script gets before the records. */
  readonly keys: readonly string[]
}

/** Where the record of a delivery is. */
export interface Place {
  readonly shard: number
  /** 128 bits of SHA-256 over the parts of the key, in base64url. */
  readonly id: string
}

/** What the keys of a shard are called that every script gets, in this order, before the records. */
export const shardKeys = ['index', 'open', 'dead', 'running', 'fence'] as const

export function shardsOf(prefix: string, count: number): readonly Shard[] {
  return Array.from({ length: count }, (_, number) => {
    const base = `{${prefix}:${number}}:`
    return { number, base, keys: shardKeys.map((name) => `${base}${name}`) }
  })
}

export function placeOf({ provider, endpoint, deliveryId }: DeliveryKey, shards: number): Place {
  // Length-prefixed, so that no choice of parts can spell another key; UTF-16, so that lone surrogates count.
  const digest = createHash('sha256')
    .update(`${provider.length}:${provider}${endpoint.length}:${endpoint}${deliveryId}`, 'utf16le')
    .digest()
  return {
    shard: digest.readUInt32BE(28) % shards,
    id: digest.toString('base64url', 0, 16),
  }
}
