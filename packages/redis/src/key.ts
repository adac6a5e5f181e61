import { hash } from 'node:crypto'
import type { DeliveryKey } from '@webhook-inbox/core'
import { packKey } from './encoding.ts'

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
  /** 132 bits of SHA-256 over the parts of the key, in base64url. */
  readonly id: string
  /** The readable parts of the key, packed. */
  readonly names: string
}

/** What the keys of a shard are called that every script gets, in this order, before the records. */
export const shardKeys = ['index', 'open', 'dead', 'running', 'fence'] as const

export function shardsOf(prefix: string, count: number): readonly Shard[] {
  return Array.from({ length: count }, (_, number) => {
    const base = `{${prefix}:${number}}:`
    return { number, base, keys: shardKeys.map((name) => `${base}${name}`) }
  })
}

export function placeOf(key: DeliveryKey, shards: number): Place {
  // In JSON no choice of parts can spell another key.
  const names = packKey(key)
  const digest = hash('sha256', names, 'base64url')
  return { shard: shardNumber(digest.slice(0, -1), shards), id: digest.slice(0, idLength), names }
}

/** The shard of a digest in base64url, by its last digits. */
export function shardNumber(digest: string, shards: number): number {
  return numberOf(digest.slice(-3)) % shards
}

const base64url = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The number that base64url digits write: 18 bits of three. */
function numberOf(digits: string): number {
  let number = 0
  for (const digit of digits) number = number * 64 + base64url.indexOf(digit)
  return number
}
