/** The one interpreter of signatures: proves that a request is the provider's. */
import { backend } from '#crypto'
import { fromBase64, fromHex, toBase64, toBase64Url, toHex } from '../crypto/bytes.ts'
import { ecdsaFromDer } from '../crypto/der.ts'
import type { HeaderMap } from '../delivery.ts'
import { contentOf } from './content.ts'
import { equalText, holds, queryValue } from './fields.ts'
import {
  algorithmOf,
  isPublicKey,
  type SchemeKey,
  type SecretKey,
  signaturesOf,
  tokenOf,
} from './keys.ts'
import type {
  Carrier,
  DigestSignature,
  HmacSignature,
  KeySource,
  Provider,
  PublicKeySignature,
  Signature,
  SignedRequest,
  VerifyCode,
} from './provider.ts'
import { splitValues } from './split.ts'
import { checkTimestamp, isWholeTime, timestampText } from './timestamp.ts'

export interface VerifySettings {
  readonly keys?: KeySource | undefined
  readonly toleranceMs?: number | undefined
}

/** What proved the request: which secret of the list, and by which scheme. */
export interface Proof {
  readonly secretIndex: number
  readonly signature: Signature
}

/** Whether the request carries anything that a scheme of the provider could judge. */
export function hasSignature(provider: Provider, headers: HeaderMap, url: string): boolean {
  return signaturesOf(provider).some(
    (signature) => isInBody(signature) || isCarried(signature, headers, url),
  )
}

function isCarried({ header = [], query }: Carrier, headers: HeaderMap, url: string): boolean {
  if (query !== undefined) return (queryValue(url, query) ?? '') !== ''
  return [header].flat().some((name) => (headers[name] ?? '') !== '')
}

function isInBody({ header, query }: Carrier): boolean {
  return header === undefined && query === undefined
}

// More than anybody sends; each costs a computation with a public key.
const mostValues = 20

/** The values of a scheme in a request. */
function valuesOf(signature: Carrier, headers: HeaderMap, url: string): readonly string[] {
  const { header, query } = signature
  if (query !== undefined) {
    const value = queryValue(url, query)
    return value === undefined || value === '' ? [] : splitValues(value, signature)
  }
  const names = header === undefined ? [] : typeof header === 'string' ? [header] : header
  return names.flatMap((name) => {
    const value = headers[name]
    return value === undefined || value === '' ? [] : splitValues(value, signature)
  })
}

interface SignatureSet {
  readonly values: readonly string[]
  /** With this set alone in its header. */
  readonly request: SignedRequest
}

function setsOf(signature: Carrier, request: SignedRequest): readonly SignatureSet[] {
  const { header, groups } = signature
  const whole = typeof header === 'string' ? request.headers[header] : undefined
  if (groups === undefined || typeof header !== 'string' || whole === undefined)
    return [{ values: valuesOf(signature, request.headers, request.url), request }]
  return whole.split(groups).map((set) => {
    const headers = { ...request.headers, [header]: set }
    return { values: valuesOf(signature, headers, request.url), request: { ...request, headers } }
  })
}

/**
 * Compares every signature of the request with what each secret gives, in constant time.
 * @returns what proved it, or why nothing did: of several reasons the one that came nearest
 */
export async function verifySignature(
  provider: Provider,
  secrets: readonly SecretKey[],
  request: SignedRequest,
  settings: VerifySettings = {},
): Promise<Proof | VerifyCode> {
  let proof: Proof | undefined
  let problem: VerifyCode | undefined
  const readable = { headers: request.headers, url: request.url, payload: undefined }
  for (const signature of signaturesOf(provider)) {
    if (signature.when !== undefined && !holds(signature.when, readable)) continue
    if (!isInBody(signature) && !isCarried(signature, request.headers, request.url)) continue
    problem ??= 'signature_mismatch'
    const sets = setsOf(signature, request)
    const count = sets.reduce((sum, { values }) => sum + Math.max(1, values.length), 0)
    if (count > mostValues) continue
    const keys: readonly (SchemeKey & { readonly secretIndex: number })[] = secrets.flatMap(
      ({ schemes }, secretIndex) =>
        schemes.flatMap((key) => (key.signature === signature ? [{ ...key, secretIndex }] : [])),
    )
    if (secrets === withoutSecret && isKeyless(signature)) {
      const result = await askFunction(signature, undefined, request, settings)
      if (result === 'valid') proof ??= { secretIndex: -1, signature }
      else problem = nearer(problem, result)
      continue
    }
    for (const key of keys) {
      for (const { values, request: one } of sets) {
        const result = await verifyOne(key, values, one, settings)
        if (result === 'valid') proof ??= { secretIndex: key.secretIndex, signature }
        else problem = nearer(problem, result)
      }
    }
  }
  return proof ?? problem ?? 'signature_missing'
}

/** What is looked up where no secret was given at all. A function that found none gives another empty list. */
export const withoutSecret: readonly SecretKey[] = Object.freeze([])

/** Whether a public key that the sender names may prove the request, without a secret. */
export function isKeyless(signature: Signature): boolean {
  return (
    (signature.scheme === 'jwt' || signature.scheme === 'function') && signature.keyless === true
  )
}

// A signature that holds and is only too old says more than that another one does not.
const order: readonly VerifyCode[] = [
  'signature_missing',
  'signature_mismatch',
  'key_unavailable',
  'timestamp_missing',
  'timestamp_invalid',
  'timestamp_out_of_tolerance',
]

function nearer(a: VerifyCode | undefined, b: VerifyCode): VerifyCode {
  return a === undefined || order.indexOf(b) > order.indexOf(a) ? b : a
}

async function verifyOne(
  key: SchemeKey,
  values: readonly string[],
  request: SignedRequest,
  settings: VerifySettings,
): Promise<'valid' | VerifyCode> {
  const { signature, secret } = key
  if (signature.scheme === 'token') {
    const token = tokenOf(signature, secret.text)
    let isEqual = false
    for (const value of values) if (equalText(value, token)) isEqual = true
    return isEqual ? 'valid' : 'signature_mismatch'
  }
  if (signature.scheme === 'jwt' || signature.scheme === 'function')
    return askFunction(signature, key, request, settings)
  const { timestamp } = signature
  const time = timestampText(timestamp, request)
  const candidates = await contentOf(signature.content, request, {
    timestamp: time,
    secret: secret.bytes,
  })
  let isProved = false
  for (const content of candidates) {
    const isRight = isPublicKey(signature)
      ? await provesPublicly(signature, key, values, content)
      : await provesByHash(signature, key, values, content)
    if (isRight) isProved = true
  }
  if (!isProved) return 'signature_mismatch'
  if (
    timestamp?.header !== undefined &&
    typeof signature.content === 'string' &&
    !isWholeTime(time, timestamp, signature.content)
  )
    return 'timestamp_invalid'
  // The time in a body is judged where the body is read.
  if (timestamp === undefined || timestamp.body !== undefined) return 'valid'
  const { toleranceMs } = settings
  return checkTimestamp(timestamp, time, { nowMs: request.nowMs, toleranceMs }) ?? 'valid'
}

async function askFunction(
  signature: Signature,
  key: SchemeKey | undefined,
  request: SignedRequest,
  { keys, toleranceMs }: VerifySettings,
): Promise<'valid' | VerifyCode> {
  if (signature.scheme !== 'jwt' && signature.scheme !== 'function') return 'signature_mismatch'
  return signature.verify({ request, secret: key?.secret, signature, keys, toleranceMs })
}

async function provesByHash(
  signature: HmacSignature | DigestSignature,
  key: SchemeKey,
  values: readonly string[],
  content: Uint8Array,
): Promise<boolean> {
  const expected = await hashOf(signature, key, content)
  const anyCase = signature.scheme === 'hmac' && signature.anyCase === true
  let isEqual = false
  for (const value of values)
    if (equalText(anyCase ? value.toLowerCase() : value, expected)) isEqual = true
  return isEqual
}

/** The keyed or plain hash as the sender writes it, without a prefix. */
export async function hashOf(
  signature: HmacSignature | DigestSignature,
  { native }: Pick<SchemeKey, 'native'>,
  content: Uint8Array,
): Promise<string> {
  const { hash, encoding } = signature
  if (signature.scheme === 'digest') return encode(await backend.digest(hash, content), encoding)
  if (native === undefined) throw new TypeError('A keyed hash needs a key.')
  return encode(await backend.hmac(hash, native, content), encoding)
}

function encode(bytes: Uint8Array, encoding: 'hex' | 'base64' | 'base64url'): string {
  if (encoding === 'hex') return toHex(bytes)
  return encoding === 'base64' ? toBase64(bytes) : toBase64Url(bytes)
}

async function provesPublicly(
  signature: PublicKeySignature,
  { native }: SchemeKey,
  values: readonly string[],
  content: Uint8Array,
): Promise<boolean> {
  if (native === undefined) return false
  for (const value of values) {
    const bytes = signature.encoding === 'hex' ? fromHex(value) : fromBase64(value)
    const raw =
      bytes !== undefined && signature.scheme === 'ecdsa-p256' ? ecdsaFromDer(bytes) : bytes
    if (raw === undefined || (signature.scheme === 'ed25519' && raw.length !== 64)) continue
    if (await backend.verify(algorithmOf(signature), native, raw, content)) return true
  }
  return false
}
