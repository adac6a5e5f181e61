/** How values of the contract are written in columns, and read back. */
import type { DeliveryKey } from '@webhook-inbox/core'

/**
 * Text that Postgres can hold, different for every different text: NUL, lone surrogates and the backslash that
 * marks them are written as `\` and four hex digits.
 */
export function escapeText(text: string): string {
  return needsEscape.test(text) ? text.replace(escaped, writeUnit) : text
}

const needsEscape = /[\0\\]|\p{Surrogate}/u
const escaped = /[\0\\]|\p{Surrogate}/gu

function writeUnit(unit: string): string {
  return `\\${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

export function unescapeText(text: string): string {
  return text.includes('\\')
    ? text.replace(/\\([0-9a-f]{4})/g, (_, digits: string) =>
        String.fromCharCode(Number.parseInt(digits, 16)),
      )
    : text
}

/** A text that is different for every different key: for maps. */
export function keyText({ provider, endpoint, deliveryId }: DeliveryKey): string {
  return `${provider.length}:${provider}${endpoint.length}:${endpoint}${deliveryId}`
}

const canonicalUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether an id is a UUID as Postgres writes one: then it is kept in 16 bytes. */
export function isCanonicalUuid(text: string): boolean {
  return canonicalUuid.test(text)
}

/**
 * A claim token as a 64-bit number, in decimal. Tokens of the library are 32 random hex digits, of which the first
 * half is kept; a token of any other form is hashed. Tokens tell the few claimers of one key apart, and the
 * fence stands beside them, so 64 bits are plenty.
 */
export function tokenNumber(token: string): string {
  return BigInt.asIntN(64, /^[0-9a-f]{32}$/.test(token) ? head(token) : fnv1a(token)).toString()
}

function head(token: string): bigint {
  return BigInt(`0x${token.slice(0, 16)}`)
}

function fnv1a(text: string): bigint {
  let hash = 0xcbf29ce484222325n
  for (let index = 0; index < text.length; index++)
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(index))) * 0x100000001b3n)
  return hash
}

/** The channel of a store's notifications: a name of Postgres has at most 63 bytes. */
export function channelOf(name: string): string {
  return `webhook_inbox_${BigInt.asUintN(64, fnv1a(name)).toString(16)}`
}

const digestBytes = 16

/**
 * A fingerprint as hex digits of the bytes that are kept. Of a SHA-256 in hex the first 128 bits are kept: enough to
 * tell contents apart, and a third of the row is saved. Other texts are kept whole, marked by their length.
 */
export function fingerprintCode(fingerprint: string): string {
  if (/^[0-9a-f]{64}$/.test(fingerprint)) return fingerprint.slice(0, 2 * digestBytes)
  const text = toHex(new TextEncoder().encode(JSON.stringify(fingerprint)))
  // White space around JSON means nothing: one more, where the length would say "digest".
  return text.length === 2 * digestBytes ? `${text}20` : text
}

/** The fingerprint of a code: of a digest the part that was kept. */
export function fingerprintOf(code: string): string {
  if (code.length === 2 * digestBytes) return code
  const text: unknown = JSON.parse(new TextDecoder().decode(fromHex(code)))
  if (typeof text === 'string') return text
  throw new TypeError('A fingerprint of the table is not one of this store.')
}

export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function fromHex(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length >> 1)
  for (let index = 0; index < bytes.length; index++)
    bytes[index] = Number.parseInt(text.slice(2 * index, 2 * index + 2), 16)
  return bytes
}

/** A Postgres array literal: one text parameter that every driver passes on unchanged. */
export function arrayLiteral(values: readonly (string | number | undefined)[]): string {
  return `{${values.map(arrayElement).join(',')}}`
}

function arrayElement(value: string | number | undefined): string {
  if (value === undefined) return 'NULL'
  if (typeof value === 'number') return String(value)
  return plainElement.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`
}

// What needs no quotes. NULL alone would be read as no value.
const plainElement = /^(?!null$)[\w.:-]+$/i
