/** How texts are kept in a record: short, and without anything that a JSON decoder could choke on. */
import type { DeliveryKey, StoredPayload } from '@webhook-inbox/core'

/** A token or fingerprint. Hex digests, the usual case, take two thirds of their length. */
export function packText(text: string): string {
  return /^([0-9a-f]{2})+$/.test(text)
    ? `h${Buffer.from(text, 'hex').toString('base64url')}`
    : JSON.stringify(text)
}

export function unpackText(packed: string): string {
  return packed.startsWith('h')
    ? Buffer.from(packed.slice(1), 'base64url').toString('hex')
    : parseText(packed)
}

/** The readable parts of a key. JSON, because it keeps every string, lone surrogates among them. */
export function packKey({ provider, endpoint, deliveryId }: DeliveryKey): string {
  return JSON.stringify([provider, endpoint, deliveryId])
}

export function unpackKey(packed: string): DeliveryKey {
  const [provider, endpoint, deliveryId] = parseList(packed)
  if (
    typeof provider !== 'string' ||
    typeof endpoint !== 'string' ||
    typeof deliveryId !== 'string'
  ) {
    throw new TypeError('A record holds no delivery key.')
  }
  return { provider, endpoint, deliveryId }
}

/** Event and action; empty when there is neither. */
export function packAbout(about: { readonly event?: string; readonly action?: string }): string {
  const { event, action } = about
  if (action !== undefined) return JSON.stringify([event ?? null, action])
  return event === undefined ? '' : JSON.stringify([event])
}

export function unpackAbout(packed: string): { readonly event?: string; readonly action?: string } {
  if (packed === '') return {}
  const [event, action] = parseList(packed)
  return {
    ...(typeof event === 'string' ? { event } : {}),
    ...(typeof action === 'string' ? { action } : {}),
  }
}

export function packHeaders(headers: StoredPayload['headers']): string {
  return JSON.stringify(Object.entries(headers))
}

export function unpackHeaders(packed: string): StoredPayload['headers'] {
  return Object.fromEntries(
    parseList(packed).flatMap((entry) => {
      if (!Array.isArray(entry)) return []
      const [name, value]: readonly unknown[] = entry
      return typeof name === 'string' && typeof value === 'string' ? [[name, value]] : []
    }),
  )
}

export function parseText(packed: string): string {
  const value: unknown = JSON.parse(packed)
  if (typeof value !== 'string') throw new TypeError('A record holds something else than a text.')
  return value
}

function parseList(packed: string): readonly unknown[] {
  const value: unknown = JSON.parse(packed)
  if (!Array.isArray(value)) throw new TypeError('A record holds something else than a list.')
  return value
}

/** The bytes, copied at once: what the caller does to its buffer while a call waits is no change of the record. */
export function copyBytes(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes)
}
