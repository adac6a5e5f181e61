/** How texts are kept in a record: short, and so that every string comes back as it was. */
import type { AttemptRecord, DeliveryKey, StoredPayload } from '@webhook-inbox/core'

const digest = /^[0-9a-f]{64}$/

/**
 * A fingerprint: a digest in hex as it is, the usual case, which becomes 32 bytes when its record is completed; and
 * other texts as JSON, which is never as long as that.
 */
export function packText(text: string): string {
  if (digest.test(text)) return text
  const packed = JSON.stringify(text)
  return Buffer.byteLength(packed) === 32 ? `${packed} ` : packed
}

export function unpackText(packed: string): string {
  return packed.startsWith('"') ? parseText(packed) : packed
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

// No bracket, so that it is told from JSON, and no space, which parts the two.
const isPlain = /^[\w.:/-]+$/

/** Event and action; empty when there is neither. */
export function packAbout(about: { readonly event?: string; readonly action?: string }): string {
  const { event, action } = about
  if (event === undefined && action === undefined) return ''
  const isShort = event !== undefined && isPlain.test(event)
  if (isShort && action === undefined) return event
  if (isShort && action !== undefined && isPlain.test(action)) return `${event} ${action}`
  return JSON.stringify([event ?? null, action ?? null])
}

export function unpackAbout(packed: string): { readonly event?: string; readonly action?: string } {
  const [event, action] = packed.startsWith('[') ? parseList(packed) : packed.split(' ')
  return {
    ...(typeof event === 'string' && packed !== '' ? { event } : {}),
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

/** The attempts in a record's log: a line of text for each. */
export function readAttempts(log: string): readonly AttemptRecord[] {
  if (log === '') return []
  return log.split('\n').map((line) => {
    const [, attempt, ended, duration, code] = /^(\d+) (\d+) (\d+|-) (.*)$/.exec(line) ?? []
    if (code === undefined) throw new TypeError('A record holds a log of attempts that is none.')
    return {
      attempt: Number(attempt),
      endedAt: new Date(Number(ended)),
      ...(duration === '-' ? {} : { durationMs: Number(duration) }),
      code: parseText(code),
    }
  })
}

/** The bytes, copied at once: what the caller does to its buffer while a call waits is no change of the record. */
export function copyBytes(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes)
}
