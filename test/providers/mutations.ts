/** Changes one byte of a signed request, over and over: whatever is covered by a signature must be refused. */
import type { Provider, VerifyRequest } from '@webhook-inbox/core'
import { verify } from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'
import { credentialsOf, headersFor } from './keys.ts'

const url = 'https://hooks.example.test/in?a=1'
const at = new Date('2026-12-01T00:00:00Z')

/** What of a body is signed; the whole where an entry is not here. */
const coveredBody: Readonly<Record<string, (body: Uint8Array) => unknown>> = {
  adyen: (body) =>
    fieldsOf(itemOf(body), [
      'pspReference',
      'originalReference',
      'merchantAccountCode',
      'merchantReference',
      'amount',
      'eventCode',
      'success',
    ]),
  'aws-sns': (body) =>
    fieldsOf(jsonOf(body), [
      'Message',
      'MessageId',
      'Subject',
      'Timestamp',
      'TopicArn',
      'Type',
      'Signature',
    ]),
  braintree: formOf,
  mailgun: (body) => fieldsOf(jsonOf(body), ['signature']),
  twilio: formOf,
}

function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}

function itemOf(body: Uint8Array): unknown {
  const { notificationItems: items } = Object(jsonOf(body))
  return Array.isArray(items) && items.length === 1
    ? Object(items[0]).NotificationRequestItem
    : undefined
}

function fieldsOf(value: unknown, names: readonly string[]): unknown {
  const given = Object(value)
  // As they are signed: a number and its text are one, and so are nothing and an empty text.
  return names.map((name) =>
    typeof given[name] === 'object' ? JSON.stringify(given[name]) : String(given[name] ?? ''),
  )
}

function formOf(body: Uint8Array): unknown {
  return [...new URLSearchParams(new TextDecoder().decode(body))].sort()
}

interface Mutation {
  readonly of: string
  readonly request: VerifyRequest
}

/** What may be changed of an entry's requests: the headers that are signed or hold the signature, and the body. */
export async function mutationsOf(
  entry: Provider,
  scheme: number,
  count: number,
  random: () => number,
): Promise<{ readonly genuine: VerifyRequest; readonly mutations: readonly Mutation[] }> {
  const { secret, keys, privateKey } = credentialsOf(entry, scheme)
  const signed = await signRequest(entry, {
    ...(secret === undefined ? {} : { secret }),
    ...(privateKey === undefined ? {} : { privateKey }),
    event: 'thing.created',
    deliveryId: 'd-1',
    url,
    at,
    scheme,
    headers: headersFor(entry, scheme),
  })
  const body = new TextEncoder().encode(signed.body)
  const genuine: VerifyRequest = {
    headers: signed.headers,
    body,
    url: signed.query === undefined ? url : `${url}&${signed.query}`,
    now: at,
    ...(secret === undefined ? {} : { secret }),
    ...(keys === undefined ? {} : { keys }),
  }
  const mutations: Mutation[] = []
  const names = signedHeaders(entry, scheme, signed.headers)
  for (let index = 0; index < count; index++) {
    for (const name of names) {
      const value = signed.headers[name] ?? ''
      const changed = changeText(value, random)
      if (isSame(entry, scheme, value, changed)) continue
      mutations.push({
        of: name,
        request: { ...genuine, headers: { ...signed.headers, [name]: changed } },
      })
    }
    if (signed.query !== undefined) {
      const [name = '', value = ''] = signed.query.split('=')
      const changed = encodeURIComponent(changeText(value, random))
      if (changed !== value)
        mutations.push({ of: 'query', request: { ...genuine, url: `${url}&${name}=${changed}` } })
    }
    if (!coversBody(entry, scheme)) continue
    const changed = changeByte(body, random)
    const covered = coveredBody[entry.name]
    if (covered !== undefined && isEqual(covered(body), covered(changed))) continue
    mutations.push({ of: 'body', request: { ...genuine, body: changed } })
  }
  return { genuine, mutations }
}

function coversBody(entry: Provider, scheme: number): boolean {
  const signature = [entry.signature].flat()[scheme]
  if (signature?.scheme === 'token') return false
  return signature?.scheme !== 'jwt' || signature.bodyHash !== undefined
}

function signedHeaders(
  entry: Provider,
  scheme: number,
  headers: Readonly<Record<string, string>>,
): readonly string[] {
  const signature = [entry.signature].flat()[scheme]
  if (signature === undefined) return []
  const names = new Set([signature.header ?? []].flat())
  if ('timestamp' in signature && signature.timestamp?.header !== undefined)
    names.add(signature.timestamp.header)
  if ('content' in signature && typeof signature.content === 'string')
    for (const [, name = ''] of signature.content.matchAll(/\{header:([^}]+)\}/g)) names.add(name)
  if (entry.name === 'paypal') {
    names.add('paypal-transmission-id')
    names.add('paypal-transmission-time')
  }
  if (entry.name === 'contentful') names.add('x-contentful-signed-headers')
  return [...names].filter((name) => headers[name] !== undefined)
}

// Hex in capitals is the same number, for the senders whose own library says so.
function isSame(entry: Provider, scheme: number, value: string, changed: string): boolean {
  if (value === changed) return true
  const signature = [entry.signature].flat()[scheme]
  const isAnyCase =
    signature?.scheme === 'ed25519' || (signature?.scheme === 'hmac' && signature.anyCase === true)
  if (isAnyCase && 'encoding' in signature && signature.encoding === 'hex')
    return value.toLowerCase() === changed.toLowerCase()
  // Blanks at the ends of a header are no part of it.
  return value.trim() === changed.trim()
}

function changeText(text: string, random: () => number): string {
  const at = Math.floor(random() * text.length)
  // Any byte that can stand in a header.
  const code = 0x20 + Math.floor(random() * 95)
  return text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1)
}

function changeByte(body: Uint8Array, random: () => number): Uint8Array {
  const changed = Uint8Array.from(body)
  const at = Math.floor(random() * body.length)
  changed[at] = ((changed[at] ?? 0) + 1 + Math.floor(random() * 255)) % 256
  return changed
}

function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

/** The mutations that were accepted, and how many were tried. Throws what verification throws. */
export async function tryMutations(
  entry: Provider,
  scheme: number,
  count: number,
  seed: number,
): Promise<{ readonly tried: number; readonly accepted: readonly string[] }> {
  const { genuine, mutations } = await mutationsOf(entry, scheme, count, randomOf(seed))
  const first = await verify(entry, genuine)
  if (!first.valid) throw new Error(`the genuine request of ${entry.name}: ${first.code}`)
  const accepted: string[] = []
  for (const { of, request } of mutations) {
    const { valid } = await verify(entry, request)
    if (valid) accepted.push(`${of}: ${JSON.stringify(request.headers)} ${String(request.body)}`)
  }
  return { tried: mutations.length, accepted }
}

/** Numbers from 0 to 1 that a seed settles (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
