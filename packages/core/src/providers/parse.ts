/** Reads id, event and items of a verified request. */
import { backend } from '#crypto'
import { randomToken, toHex, utf8 } from '../crypto/bytes.ts'
import type { HeaderMap } from '../delivery.ts'
import type { DecodedBody } from './decode.ts'
import { headersOf, type Readable, readPath, readText } from './fields.ts'
import type { IdSource, ItemParts, Provider, TextSource } from './provider.ts'

/** Why a verified request cannot be told from others. */
export type ParseCode =
  | 'delivery_id_missing'
  | 'delivery_id_invalid'
  | 'event_missing'
  | 'event_invalid'
  | 'endpoint_invalid'

/** One event of several in a request. */
export interface ParsedItem {
  readonly id: string
  readonly event: string
  readonly payload: unknown
}

export interface ParsedRequest {
  readonly deliveryId: string
  readonly event: string
  readonly action: string | undefined
  /** From the provider's endpoint header; undefined when the request or the entry has none. */
  readonly endpoint: string | undefined
  readonly payload: unknown
  /** False when the bytes are nothing that the sender writes; `payload` is then undefined. */
  readonly readable: boolean
  /** The events of a request that holds several, each id once; undefined when it is one event. */
  readonly items: readonly ParsedItem[] | undefined
}

/** A request whose signature holds. */
export interface ParseInput {
  readonly headers: HeaderMap
  readonly url: string
  readonly decoded: DecodedBody
  /** Of {@link coveredDigest}. */
  readonly digest: string
}

export async function parseRequest(
  provider: Provider,
  { headers, url, decoded, digest }: ParseInput,
): Promise<ParsedRequest | ParseCode> {
  const { payload, readable } = decoded
  const from: Readable = { headers, url, payload, bodyDigest: `sha256:${digest}` }
  const items = await readItems(provider, payload, digest)
  // Each event has an id of its own; what only wraps them must never have one that an event could have.
  const deliveryId =
    items === undefined ? await readId(provider.deliveryId, from) : `${batchPrefix}${digest}`
  if (deliveryId === undefined) return 'delivery_id_missing'
  if (!isToken(deliveryId, 255)) return 'delivery_id_invalid'
  const event = readEvent(provider.event, from)
  if (event === undefined) return 'event_missing'
  if (!isToken(event, 128)) return 'event_invalid'
  const action = readAction(provider, from)
  const endpoint = provider.endpoint === undefined ? undefined : headers[provider.endpoint.header]
  if (endpoint !== undefined && provider.endpoint?.pattern.test(endpoint) !== true)
    return 'endpoint_invalid'
  return { deliveryId, event, action, endpoint, payload, readable, items }
}

const batchPrefix = 'batch:sha256:'

/** Hex SHA-256 of what the signature covers: the raw body, for the most part. */
export async function coveredDigest(
  { covers }: Pick<Provider, 'covers'>,
  from: Readable,
  body: Uint8Array,
): Promise<string> {
  const text = covers === undefined ? undefined : readText(covers, from)
  return toHex(await backend.digest('SHA-256', text === undefined ? body : utf8(text)))
}

/** What the stored bytes of a delivery say beside what its record knows. */
export async function parseStored(
  provider: Provider,
  {
    headers,
    decoded,
    body,
  }: Pick<ParseInput, 'headers' | 'decoded'> & { readonly body: Uint8Array },
): Promise<{
  readonly event: string | undefined
  readonly action: string | undefined
  readonly items: readonly ParsedItem[] | undefined
}> {
  const { payload } = decoded
  // The address is not stored: what stood in it is missing here, and must not take the rest with it.
  const known: Readable = { headers, url: '', payload }
  const digest = await coveredDigest(provider, known, body)
  const from: Readable = { ...known, bodyDigest: `sha256:${digest}` }
  return {
    event: readEvent(provider.event, from),
    action: readAction(provider, from),
    items: await readItems(provider, payload, digest),
  }
}

function readAction({ action }: Provider, from: Readable): string | undefined {
  const stated = action === undefined ? undefined : readText(action, from)
  return stated !== undefined && isToken(stated, 128) ? stated : undefined
}

async function readId(source: IdSource, from: Readable): Promise<string | undefined> {
  // Nothing tells two of them apart, so each is one.
  if ('dedup' in source) return randomToken()
  const text = readText(source, from)
  if (text === undefined || text.trim() === '') return undefined
  // A header that says something else than an id is a fault of the sender or a proxy; any text in a body may be one.
  return 'header' in source || isToken(text, 255) ? text : digestOf(text)
}

function readEvent(source: TextSource, from: Readable): string | undefined {
  const text = readText(source, from)?.trim()
  if (text === undefined || text === '' || 'header' in source) return text || undefined
  return eventName(text)
}

// Some senders write names with blanks.
function eventName(text: string): string {
  return text.replaceAll(/[^\x21-\x7e]+/g, '_').slice(0, 128)
}

async function digestOf(text: string): Promise<string> {
  return `sha256:${toHex(await backend.digest('SHA-256', utf8(text)))}`
}

async function readItems(
  { items: source }: Provider,
  payload: unknown,
  digest: string,
): Promise<readonly ParsedItem[] | undefined> {
  if (source === undefined) return undefined
  const parts = typeof source === 'function' ? source(payload) : listItems(source, payload)
  if (parts === undefined) return undefined
  const byId = new Map<string, ParsedItem>()
  for (const [index, { id, event, payload: item, identity = item }] of parts.entries()) {
    const own =
      id === undefined || id.trim() === ''
        ? await digestOf(writeJson(identity) ?? `${digest} ${index}`)
        : isToken(id, 255)
          ? id
          : await digestOf(id)
    if (!byId.has(own))
      byId.set(own, { id: own, event: eventName(event?.trim() || 'unknown'), payload: item })
  }
  return [...byId.values()]
}

/** Undefined for what no JSON can be made of. */
export function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    // It is nested deeper than the stack goes: JSON.parse has no such limit.
    return undefined
  }
}

function listItems(
  source: Exclude<Provider['items'], ((payload: unknown) => unknown) | undefined>,
  payload: unknown,
): readonly ItemParts[] | undefined {
  const list = readPath(payload, source.list)
  if (!Array.isArray(list)) return undefined
  return list.map((element: unknown) => {
    const item = readPath(element, source.each ?? '')
    const from: Readable = { headers: {}, url: '', payload: item }
    const texts = { id: readText(source.id, from), event: readText(source.event, from) }
    return { ...texts, payload: item, identity: without(item, source.attempt) }
  })
}

function without(item: unknown, name: string | undefined): unknown {
  if (name === undefined || typeof item !== 'object' || item === null) return item
  return Object.fromEntries(Object.entries(item).filter(([key]) => key !== name))
}

/**
 * The headers that are stored with the bytes: those that the entry reads, but its signature. An allow-list, for
 * a request may carry credentials.
 */
export function headersToStore(
  provider: Provider,
  headers: HeaderMap,
): Readonly<Record<string, string>> {
  const { deliveryId, endpoint } = provider
  const names = [
    'content-type',
    ...('dedup' in deliveryId ? [] : headersOf(deliveryId)),
    ...[provider.event, provider.action, provider.retryNumber, provider.retryReason].flatMap(
      headersOf,
    ),
    ...(endpoint === undefined ? [] : [endpoint.header]),
  ]
  const kept: Record<string, string> = {}
  for (const name of names) {
    const value = headers[name]
    if (value !== undefined) kept[name] = value
  }
  return kept
}

// Visible ASCII: what can stand in a header, a log line and a column without being escaped. A repeated header
// is joined by ", " and fails here.
function isToken(text: string, maxLength: number): boolean {
  return text.length <= maxLength && /^[\x21-\x7e]+$/.test(text)
}
