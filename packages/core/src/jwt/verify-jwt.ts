/** Proves a JSON Web Token, and that it is about this request. */

import {
  type CryptoKey,
  createRemoteJWKSet,
  decodeProtectedHeader,
  errors,
  importJWK,
  importSPKI,
  importX509,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
} from 'jose'
import { backend } from '#crypto'
import { fromBase64, toBase64, toHex, utf8 } from '../crypto/bytes.ts'
import { equalText } from '../providers/fields.ts'
import type {
  JwtSignature,
  KeySource,
  SignatureInput,
  SignedRequest,
  VerifyCode,
} from '../providers/provider.ts'

type Key = CryptoKey | Uint8Array

/** The scheme `jwt`. Tokens in another algorithm than the entry's are refused, `none` and mixed-up ones too. */
export async function verifyJwt({
  request,
  secret,
  signature,
  keys,
  toleranceMs,
}: SignatureInput): Promise<'valid' | VerifyCode> {
  if (signature.scheme !== 'jwt') return 'signature_mismatch'
  const token = tokenOf(signature, request)
  if (token === undefined) return 'signature_missing'
  // Another text for the same bytes would be another signature for the same message.
  if (!token.split('.').every(isCanonical)) return 'signature_mismatch'
  const held = heldBy(signature, secret?.text)
  const algorithm = algorithmOf(token)
  if (algorithm === undefined || !signature.algorithms.includes(algorithm))
    return 'signature_mismatch'
  const issuer = held.issuer ?? signature.issuer
  const options: JWTVerifyOptions = {
    algorithms: [...signature.algorithms],
    currentDate: new Date(request.nowMs),
    clockTolerance: (signature.skewMs ?? 0) / 1000,
    requiredClaims: [...(signature.requiredClaims ?? [])],
    ...(issuer === undefined ? {} : { issuer: typeof issuer === 'string' ? issuer : [...issuer] }),
    ...(held.audience === undefined ? {} : { audience: held.audience }),
    ...maxAge(toleranceMs ?? signature.maxAgeMs),
  }
  let claims: JWTPayload
  try {
    claims = await proved(token, { signature, algorithm, key: held.key, keys, options })
  } catch (error) {
    return codeOf(error)
  }
  if (held.email !== undefined && !(claims.email === held.email && claims.email_verified === true))
    return 'signature_mismatch'
  return (await isAbout(signature, claims, request)) ? 'valid' : 'signature_mismatch'
}

function maxAge(ageMs: number | undefined): Pick<JWTVerifyOptions, 'maxTokenAge'> {
  return ageMs === undefined ? {} : { maxTokenAge: ageMs / 1000 }
}

function tokenOf(
  { header, prefix = '' }: JwtSignature,
  { headers }: SignedRequest,
): string | undefined {
  const value = typeof header === 'string' ? headers[header] : undefined
  return value?.startsWith(prefix) === true ? value.slice(prefix.length) : undefined
}

function isCanonical(part: string): boolean {
  const base64 = part.replaceAll('-', '+').replaceAll('_', '/')
  const padded = base64.padEnd(Math.ceil(base64.length / 4) * 4, '=')
  return /^[A-Za-z0-9_-]*$/.test(part) && fromBase64(padded) !== undefined
}

function algorithmOf(token: string): string | undefined {
  try {
    return decodeProtectedHeader(token).alg
  } catch {
    return undefined
  }
}

export interface Held {
  readonly key?: string
  readonly issuer?: string
  readonly audience?: string
  readonly email?: string
}

export function heldBy({ secretHolds = 'key' }: JwtSignature, secret: string | undefined): Held {
  if (secret === undefined) return {}
  if (secretHolds === 'audience email') {
    const [audience = '', email] = secret.trim().split(/\s+/)
    return email === undefined ? { audience } : { audience, email }
  }
  const at = secretHolds === 'issuer:key' ? secret.indexOf(':') : -1
  return at === -1 ? { key: secret } : { issuer: secret.slice(0, at), key: secret.slice(at + 1) }
}

async function proved(
  token: string,
  {
    signature,
    algorithm,
    key,
    keys,
    options,
  }: {
    readonly signature: JwtSignature
    readonly algorithm: string
    readonly key: string | undefined
    readonly keys: KeySource | undefined
    readonly options: JWTVerifyOptions
  },
): Promise<JWTPayload> {
  if (key === undefined && keys === undefined && signature.keysUrl !== undefined)
    return (await jwtVerify(token, remoteKeys(signature.keysUrl), options)).payload
  const found = key === undefined ? await askKeys(token, keys) : key
  if (found === undefined) throw new KeyUnavailable()
  return (await jwtVerify(token, await keyOf(found, algorithm), options)).payload
}

class KeyUnavailable extends Error {}

async function askKeys(
  token: string,
  keys: KeySource | undefined,
): Promise<string | Readonly<Record<string, unknown>> | undefined> {
  const { kid } = decodeProtectedHeader(token)
  try {
    return await keys?.(kid === undefined ? {} : { kid })
  } catch {
    return undefined
  }
}

async function keyOf(
  key: string | Readonly<Record<string, unknown>>,
  algorithm: string,
): Promise<Key> {
  if (typeof key !== 'string') return importJWK({ ...key }, algorithm)
  if (algorithm.startsWith('HS')) return utf8(key)
  if (key.includes('BEGIN CERTIFICATE')) return importX509(key, algorithm)
  return key.includes('-----BEGIN')
    ? importSPKI(key, algorithm)
    : importJWK(JSON.parse(key), algorithm)
}

const remote = new Map<string, ReturnType<typeof createRemoteJWKSet>>()

// One for all requests: it keeps what it has fetched, and asks again for a key that it does not know.
function remoteKeys(url: string): ReturnType<typeof createRemoteJWKSet> {
  const known = remote.get(url) ?? createRemoteJWKSet(new URL(url), { timeoutDuration: 5000 })
  remote.set(url, known)
  return known
}

function codeOf(error: unknown): VerifyCode {
  if (error instanceof KeyUnavailable || error instanceof errors.JWKSTimeout)
    return 'key_unavailable'
  if (error instanceof errors.JWTExpired) return 'timestamp_out_of_tolerance'
  if (error instanceof errors.JWTClaimValidationFailed) {
    const isTime = error.claim === 'nbf' || error.claim === 'iat' || error.claim === 'exp'
    if (isTime)
      return error.reason === 'missing' ? 'timestamp_missing' : 'timestamp_out_of_tolerance'
  }
  // A network that is down, a key set that is broken: not the token's fault.
  if (error instanceof TypeError && error.message.includes('fetch')) return 'key_unavailable'
  if (error instanceof errors.JWKSInvalid || isGeneric(error)) return 'key_unavailable'
  return 'signature_mismatch'
}

// Of a key set that is answered with an error, or is no JSON, jose says no more.
function isGeneric(error: unknown): boolean {
  return error instanceof errors.JOSEError && error.code === 'ERR_JOSE_GENERIC'
}

async function isAbout(
  { bodyHash, urlHash }: JwtSignature,
  claims: JWTPayload,
  { body, url }: SignedRequest,
): Promise<boolean> {
  if (bodyHash !== undefined) {
    const digest = await backend.digest('SHA-256', body)
    const expected = bodyHash.encoding === 'hex' ? toHex(digest) : toBase64(digest)
    const stated = claims[bodyHash.claim]
    // Nothing was hashed of a body that is empty.
    const isEmpty = stated === undefined && body.length === 0 && bodyHash.optional === true
    if (!isEmpty && !(typeof stated === 'string' && equalText(stated, expected))) return false
  }
  if (urlHash === undefined) return true
  const stated = claims[urlHash]
  return (
    typeof stated === 'string' &&
    equalText(stated, toHex(await backend.digest('SHA-256', utf8(url))))
  )
}
