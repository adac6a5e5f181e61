import {
  type FieldSource,
  type IdSource,
  optionError,
  type Provider,
  type ProviderName,
  providerOf,
  type Signature,
  type SignMessage,
  signatureHeaders,
  type TextSource,
} from '@webhook-inbox/core'
import { signers } from '@webhook-inbox/core/signing'

export interface SignRequestOptions {
  /** What the receiver has as its secret. Required, except of senders that sign with a key pair. */
  readonly secret?: string
  /** Of senders that sign with a key pair: PKCS #8 in PEM. The receiver gets the public key. */
  readonly privateKey?: string
  /**
   * The event, for instance `push`. It goes where the provider states it, unless the payload says it already.
   * @default what the payload says, else `test`
   */
  readonly event?: string
  /**
   * Sent as JSON, or as a form by providers that send forms. Id and event are added where the provider states them in
   * the body. Excludes `body`. @default {}
   */
  readonly payload?: unknown
  /** The exact bytes to sign, or their text. Excludes `payload`. */
  readonly body?: string | Uint8Array
  /** @default a random UUID */
  readonly deliveryId?: string
  /** The value of the provider's endpoint header; for GitHub the hook id, for instance `1234`. @default no header */
  readonly endpoint?: string
  /** Sends the JSON as a form field, as GitHub does by default. @default false */
  readonly form?: boolean
  /** The public address of the receiver, for providers that sign it. */
  readonly url?: string
  /** When it was signed. @default now */
  readonly at?: Date
  /** Which of the provider's schemes, by its place in the entry. @default 0 */
  readonly scheme?: number
  /** The key id in a JSON Web Token. */
  readonly kid?: string
  /** Further headers; they win over those that are made here. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A request as `fetch`, Hono's `app.request` and supertest's `set` and `send` take it. */
export interface SignedRequest<Body extends string | Uint8Array = string> {
  readonly method: 'POST'
  /** Lower-case names. */
  readonly headers: Record<string, string>
  /** Text, unless bytes were given. */
  readonly body: Body
  /** What has to stand in the query of the address: of senders whose secret is there. */
  readonly query?: string
}

/**
 * Builds a request that the provider could have sent, for the tests of your own receiver.
 *
 * @example
 * const request = await signRequest('github', { secret, event: 'push', payload: { ref: 'refs/heads/main' } })
 * await fetch(`${url}/webhooks/github`, request)
 * await app.request('/webhooks/github', request)
 * await supertest(app).post('/webhooks/github').set(request.headers).send(request.body)
 *
 * @throws WebhookInboxError `ERR_OPTION` for an unknown provider, with the nearest name, a blank secret, or a key or an address that is missing
 */
export async function signRequest<Bytes extends Uint8Array>(
  provider: ProviderName | Provider,
  options: SignRequestOptions & { readonly body: Bytes; readonly form?: false },
): Promise<SignedRequest<Bytes>>
export async function signRequest(
  provider: ProviderName | Provider,
  options: SignRequestOptions & { readonly body?: string },
): Promise<SignedRequest>
export async function signRequest(
  provider: ProviderName | Provider,
  options: SignRequestOptions,
): Promise<SignedRequest<string | Uint8Array>> {
  const entry = providerOf(provider)
  const { secret, privateKey, event = 'test', endpoint, at = new Date(), url = '', kid } = options
  const deliveryId = options.deliveryId ?? crypto.randomUUID()
  if (options.form === true && entry.formField === undefined && !sendsForms.has(entry.name))
    throw new TypeError(`signRequest: ${entry.name} sends no forms.`)

  const signing = signers[entry.name]
  const signature = [entry.signature].flat()[options.scheme ?? 0]
  if (signature === undefined)
    throw optionError(`signRequest: ${entry.name} has no scheme ${options.scheme}.`)
  if (privateKey === undefined && keyPairs.has(signature.scheme)) {
    throw optionError(
      `signRequest: ${entry.name} signs with a key pair. Pass privateKey (PKCS #8 in PEM), and give the receiver the public one as its secret.`,
    )
  }
  const isMade = signing !== undefined && (signature.scheme === 'function' || isReadOf(signature))
  const draft: Draft = { headers: {}, payload: copyOf(options.payload) ?? emptyPayload(entry) }
  if (options.body === undefined) {
    if (signature.deliveryId !== undefined) state(draft, signature.deliveryId, deliveryId)
    if (!('dedup' in entry.deliveryId)) state(draft, entry.deliveryId, deliveryId)
    stateTime(draft, signature, at)
    state(draft, entry.event, event)
    stateItems(draft, entry, deliveryId, event)
  } else {
    if (signature.deliveryId !== undefined)
      state({ headers: draft.headers, payload: undefined }, signature.deliveryId, deliveryId)
    stateHeaders(draft, entry, deliveryId, event)
  }
  if (entry.endpoint !== undefined && endpoint !== undefined)
    draft.headers[entry.endpoint.header] = endpoint

  const signed = isMade
    ? await signing({ secret, privateKey, payload: draft.payload, headers: draft.headers, at })
    : undefined
  const payload = signed === undefined ? draft.payload : signed.payload
  const isForm = options.form === true || (options.body === undefined && sendsForms.has(entry.name))
  const body = isForm
    ? formOf(entry, options.body === undefined ? payload : String(options.body))
    : (options.body ?? JSON.stringify(payload))
  const bytes = bytesOf(body)
  const headers: Record<string, string> = {
    'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
    ...draft.headers,
  }
  for (const [name, value] of Object.entries(options.headers ?? {}))
    headers[name.toLowerCase()] = value

  if (signature.scheme === 'token' && signature.header === undefined) {
    const query = new URLSearchParams({ [signature.query ?? '']: secret ?? '' }).toString()
    return { method: 'POST', headers, body, query }
  }
  const proof = isMade
    ? await signed?.headersOf?.(bytes)
    : signature.scheme === 'jwt'
      ? await tokenHeaders(entry, { secret, privateKey, kid, deliveryId, url, body: bytes, at })
      : await signatureHeaders(entry, {
          ...messageOf(options),
          headers,
          body: bytes,
          url,
          at,
        })
  Object.assign(headers, proof)
  for (const [name, value] of Object.entries(options.headers ?? {}))
    headers[name.toLowerCase()] = value
  return { method: 'POST', headers, body }
}

interface Draft {
  readonly headers: Record<string, string>
  readonly payload: unknown
}

const keyPairs: ReadonlySet<string> = new Set(['ed25519', 'ecdsa-p256', 'rsa'])

// By the providers that post fields, not JSON.
const sendsForms: ReadonlySet<string> = new Set(['twilio', 'braintree'])

function messageOf({
  secret,
  privateKey,
  scheme,
}: SignRequestOptions): Pick<SignMessage, 'secret' | 'scheme'> {
  return { secret: privateKey ?? secret ?? '', ...(scheme === undefined ? {} : { scheme }) }
}

// Its content is read out of the very header that is to be made.
function isReadOf(signature: Signature): boolean {
  return (
    'content' in signature &&
    typeof signature.content === 'function' &&
    'timestamp' in signature &&
    signature.timestamp?.header !== undefined &&
    signature.timestamp.header === signature.header
  )
}

function stateTime(draft: Draft, signature: Signature, at: Date): void {
  if (!('timestamp' in signature) || signature.timestamp?.body === undefined) return
  const { body, unit } = signature.timestamp
  setAt(draft.payload, body, unit === 'ms' ? at.getTime() : at.toISOString())
}

// Installed with the entry that was handed in: only the entries of `core/jwt` have this scheme.
async function tokenHeaders(
  ...given: Parameters<typeof import('@webhook-inbox/core/jwt')['jwtHeaders']>
): Promise<Record<string, string>> {
  const { jwtHeaders } = await import('@webhook-inbox/core/jwt')
  return jwtHeaders(...given)
}

// What JSON makes of it: the caller's object stays as it is.
function copyOf(payload: unknown): unknown {
  const text = JSON.stringify(payload)
  return text === undefined ? undefined : JSON.parse(text)
}

function emptyPayload({ items }: Provider): unknown {
  if (items === undefined || typeof items === 'function') return {}
  const item = items.each === undefined ? {} : { [items.each]: {} }
  if (items.list === '') return [item]
  const payload = {}
  setAt(payload, items.list, [item])
  return payload
}

/** Writes a text to where the provider states it, unless something is there. */
function state(draft: Draft, source: TextSource | IdSource, text: string): void {
  if (typeof source === 'function') {
    // The name of the event is the name of a field.
    if (isRecord(draft.payload) && Object.keys(draft.payload).every((name) => name !== text))
      draft.payload[text] ??= {}
    return
  }
  if ('anyOf' in source) {
    const [first] = source.anyOf.filter(isWritable)
    if (first !== undefined && !source.anyOf.some((one) => isStated(draft, one)))
      state(draft, first, text)
    return
  }
  if ('join' in source) {
    const parts = text.split(source.separator ?? ':')
    for (const [index, part] of source.join.entries())
      state(draft, part, parts.length === source.join.length ? (parts[index] ?? text) : text)
    return
  }
  if ('header' in source) draft.headers[source.header] ??= text
  else if ('body' in source) setAt(draft.payload, source.body, text)
}

function isWritable(source: TextSource): boolean {
  return (
    typeof source !== 'function' && ('header' in source || 'body' in source || 'join' in source)
  )
}

function isStated(draft: Draft, source: TextSource): boolean {
  return typeof source !== 'function' && 'body' in source && at(draft.payload, source) !== undefined
}

// Of bytes that are given only the headers are ours to say.
function stateHeaders(draft: Draft, entry: Provider, deliveryId: string, event: string): void {
  const blank: Draft = { headers: draft.headers, payload: undefined }
  const { deliveryId: source } = entry
  if (!('dedup' in source)) state(blank, source, deliveryId)
  state(blank, entry.event, event)
}

function stateItems(draft: Draft, { items }: Provider, deliveryId: string, event: string): void {
  if (items === undefined || typeof items === 'function') return
  const list = at(draft.payload, { body: items.list })
  if (!Array.isArray(list)) return
  for (const [index, element] of list.entries()) {
    const item = items.each === undefined ? element : at(element, { body: items.each })
    const own: Draft = { headers: {}, payload: item }
    state(own, items.id, index === 0 ? deliveryId : `${deliveryId}-${index}`)
    state(own, items.event, event)
  }
}

function at(value: unknown, source: FieldSource): unknown {
  if (!('body' in source)) return undefined
  if (source.body === '') return value
  let current = value
  for (const name of source.body.split('.')) current = isRecord(current) ? current[name] : undefined
  return current
}

// Only into plain objects and lists that are there, or missing: what the caller wrote stays.
function setAt(value: unknown, path: string, text: unknown): void {
  const names = path.split('.')
  const last = names.pop()
  let current = value
  for (const name of names) {
    if (!isRecord(current)) return
    current[name] ??= {}
    current = current[name]
  }
  if (last !== undefined && isRecord(current)) current[last] ??= text
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function formOf({ formField }: Provider, payload: unknown): string {
  if (formField !== undefined) {
    const json = typeof payload === 'string' ? payload : JSON.stringify(payload)
    return new URLSearchParams({ [formField]: json }).toString()
  }
  if (!isRecord(payload))
    throw optionError('signRequest: "payload" must be an object: its fields are those of the form.')
  return new URLSearchParams(
    Object.entries(payload).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? new TextEncoder().encode(body) : body
}
