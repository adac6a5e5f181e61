/** The one interpreter of provider entries: verifies a request, then reads what its entry points to. */

import { backend } from '#crypto'
import { equalBytes, toHex, utf8 } from '../crypto/bytes.ts'
import type { HmacKey } from '../crypto/types.ts'
import type { HeaderMap } from '../delivery.ts'
import { mediaType } from '../headers.ts'
import type { FieldSource, Provider } from './provider.ts'

/** Why a request is not the provider's. */
export type VerifyCode = 'signature_missing' | 'signature_mismatch'

/** Why a verified request cannot be told from others. */
export type ParseCode =
  | 'delivery_id_missing'
  | 'delivery_id_invalid'
  | 'event_missing'
  | 'event_invalid'
  | 'endpoint_invalid'

/** The one signature header, or undefined when the request has none. */
export function signatureOf(provider: Provider, headers: HeaderMap): string | undefined {
  return headers[provider.signature.header] || undefined
}

export function importSecret(provider: Provider, secret: string): Promise<HmacKey> | HmacKey {
  return backend.importHmacKey(provider.signature.hash, utf8(secret))
}

/** Signs the bytes as the provider does: the value of its signature header. */
export async function sign(provider: Provider, key: HmacKey, body: Uint8Array): Promise<string> {
  const { hash, prefix } = provider.signature
  return prefix + toHex(await backend.hmac(hash, key, body))
}

/**
 * Compares the signature with what each key gives, in constant time.
 * @returns the index of the key that matched, or why none did
 */
export async function verifySignature(
  provider: Provider,
  keys: readonly HmacKey[],
  headers: HeaderMap,
  body: Uint8Array,
): Promise<number | VerifyCode> {
  const signature = signatureOf(provider, headers)
  if (signature === undefined) return 'signature_missing'
  const given = utf8(signature)
  let matched = -1
  for (const [index, key] of keys.entries()) {
    const expected = utf8(await sign(provider, key, body))
    if (equalBytes(given, expected) && matched === -1) matched = index
  }
  return matched === -1 ? 'signature_mismatch' : matched
}

export interface ParsedRequest {
  readonly deliveryId: string
  readonly event: string
  readonly action: string | undefined
  /** From the provider's endpoint header; undefined when the request or the entry has none. */
  readonly endpoint: string | undefined
  readonly payload: unknown
  /** False when the bytes are not what the content type says; `payload` is then undefined. */
  readonly readable: boolean
}

/** Reads id, event and payload of a verified request. */
export function parseRequest(
  provider: Provider,
  headers: HeaderMap,
  body: Uint8Array,
): ParsedRequest | ParseCode {
  const { payload, readable } = decodeBody(provider, headers, body)
  const deliveryId = readField(provider.deliveryId, headers, payload)
  if (deliveryId === undefined || deliveryId === '') return 'delivery_id_missing'
  if (!isToken(deliveryId, 255)) return 'delivery_id_invalid'
  const event = readField(provider.event, headers, payload)
  if (event === undefined || event === '') return 'event_missing'
  if (!isToken(event, 128)) return 'event_invalid'
  const stated =
    provider.action === undefined ? undefined : readField(provider.action, headers, payload)
  const action = stated !== undefined && isToken(stated, 128) ? stated : undefined
  const endpoint = provider.endpoint === undefined ? undefined : headers[provider.endpoint.header]
  if (endpoint !== undefined && provider.endpoint?.pattern.test(endpoint) !== true)
    return 'endpoint_invalid'
  return { deliveryId, event, action, endpoint, payload, readable }
}

/**
 * The headers that are stored with the bytes: those that the entry reads, but its signature. An allow-list, for
 * a request may carry credentials.
 */
export function headersToStore(
  provider: Provider,
  headers: HeaderMap,
): Readonly<Record<string, string>> {
  const sources = [provider.deliveryId, provider.event, provider.action, provider.endpoint]
  const names = sources.flatMap((source) =>
    source !== undefined && 'header' in source ? [source.header] : [],
  )
  const kept: Record<string, string> = {}
  for (const name of ['content-type', ...names]) {
    const value = headers[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}

function readField(source: FieldSource, headers: HeaderMap, payload: unknown): string | undefined {
  if ('header' in source) return headers[source.header]?.trim()
  if (typeof payload !== 'object' || payload === null || !Object.hasOwn(payload, source.body))
    return undefined
  const value: unknown = Reflect.get(payload, source.body)
  return typeof value === 'string' ? value : undefined
}

// Visible ASCII: what can stand in a header, a log line and a column without being escaped. A repeated header
// is joined by ", " and fails here.
function isToken(text: string, maxLength: number): boolean {
  return text.length <= maxLength && /^[\x21-\x7e]+$/.test(text)
}

function decodeBody(
  provider: Provider,
  headers: HeaderMap,
  body: Uint8Array,
): { readonly payload: unknown; readonly readable: boolean } {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(body)
    const isForm = mediaType(headers) === 'application/x-www-form-urlencoded'
    const json =
      isForm && provider.formField !== undefined ? formField(text, provider.formField) : text
    return json === undefined
      ? { payload: undefined, readable: false }
      : { payload: JSON.parse(json), readable: true }
  } catch {
    return { payload: undefined, readable: false }
  }
}

// Strict decoding: URLSearchParams would turn broken escapes into replacement characters without a word.
function formField(form: string, field: string): string | undefined {
  for (const pair of form.split('&')) {
    const cut = pair.indexOf('=')
    const name = cut === -1 ? pair : pair.slice(0, cut)
    if (decodeForm(name) === field) return cut === -1 ? '' : decodeForm(pair.slice(cut + 1))
  }
  return undefined
}

function decodeForm(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}
