/** From the text of a secret to the keys of an entry's schemes. */
import { backend } from '#crypto'
import { fromBase64, fromHex, toBase64, utf8 } from '../crypto/bytes.ts'
import { spkiOfEd25519, spkiOfPem } from '../crypto/der.ts'
import type { HmacKey, PublicKey, PublicKeyAlgorithm } from '../crypto/types.ts'
import type {
  JwtSignature,
  Provider,
  PublicKeySignature,
  SecretFormat,
  SecretValue,
  Signature,
  TokenSignature,
} from './provider.ts'

/** A secret made ready for one scheme. */
export interface SchemeKey {
  readonly signature: Signature
  readonly secret: SecretValue
  readonly native: HmacKey | PublicKey | undefined
}

/** A secret made ready for every scheme of its entry that can use it. */
export interface SecretKey {
  readonly text: string
  readonly schemes: readonly SchemeKey[]
}

export function signaturesOf({ signature }: Provider): readonly Signature[] {
  return isList(signature) ? signature : [signature]
}

function isList(value: Provider['signature']): value is readonly Signature[] {
  return Array.isArray(value)
}

/** What is wrong with a secret, in words for an error message; undefined when a scheme can use it. */
export function secretProblem(provider: Provider, secret: string): string | undefined {
  const signatures = signaturesOf(provider)
  const fitting = signatures.filter((signature) => secretBytes(signature, secret) !== undefined)
  if (fitting.length === 0) return `not ${provider.secretIs ?? 'a secret of this provider'}`
  // Files end with one, and what people type into a form never does. Keys in PEM may.
  if (/[\r\n]$/.test(secret) && !secret.includes('-----') && !isJsonObject(secret))
    return 'a text that ends with a line break (.trim() takes it away)'
  return undefined
}

/** What a receiver's secret lacks beside that, for an error message. */
export function scopeProblem(provider: Provider, secret: string): string | undefined {
  const scopes = signaturesOf(provider).flatMap((signature) =>
    'secret' in signature && signature.secret?.scope !== undefined ? [signature.secret.scope] : [],
  )
  if (scopes.length === 0 || scopes.some((scope) => scope.test(secret))) return undefined
  return `not ${provider.secretIs ?? 'a secret of this provider'}`
}

/** @throws what the crypto build says of a key that is none */
export async function importSecret(provider: Provider, text: string): Promise<SecretKey> {
  const schemes: SchemeKey[] = []
  for (const signature of signaturesOf(provider)) {
    const bytes = secretBytes(signature, text)
    if (bytes === undefined) continue
    schemes.push({ signature, secret: { text, bytes }, native: await importKey(signature, bytes) })
  }
  return { text, schemes }
}

async function importKey(
  signature: Signature,
  bytes: Uint8Array,
): Promise<HmacKey | PublicKey | undefined> {
  if (signature.scheme === 'hmac') {
    const { derive } = signature.secret ?? {}
    const key = derive === undefined ? bytes : await backend.digest(derive, bytes)
    return backend.importHmacKey(signature.hash, key)
  }
  return isPublicKey(signature) ? backend.importPublicKey(algorithmOf(signature), bytes) : undefined
}

export function isPublicKey(signature: Signature): signature is PublicKeySignature {
  const { scheme } = signature
  return scheme === 'ed25519' || scheme === 'ecdsa-p256' || scheme === 'rsa'
}

export function algorithmOf({ scheme, hash }: PublicKeySignature): PublicKeyAlgorithm {
  if (scheme !== 'rsa') return scheme
  return hash === 'SHA-1' ? 'rsa-sha1' : 'rsa-sha256'
}

/** The bytes that a scheme makes of a secret: of a public key its SPKI. Undefined when it is not of that format. */
function secretBytes(signature: Signature, text: string): Uint8Array | undefined {
  if (signature.scheme === 'jwt') return isKeyText(signature, text) ? utf8(text) : undefined
  if (signature.scheme === 'token') {
    const token = tokenOf(signature, text)
    return token === '' || (signature.basic === true && !isBasic(token)) ? undefined : utf8(token)
  }
  if (!isPublicKey(signature)) return decodeSecret(text, signature.secret)
  if (text.includes('-----BEGIN')) return spkiOfPem(text)
  const bytes = decodeSecret(text, { encoding: 'base64', ...signature.secret })
  if (bytes === undefined) return undefined
  // Every SPKI is a sequence; whether it is a key, its import tells.
  if (signature.scheme !== 'ed25519') return bytes[0] === 0x30 ? bytes : undefined
  return bytes.length === 32 ? spkiOfEd25519(bytes) : bytes.length === 44 ? bytes : undefined
}

/** What the header holds after its prefix. People copy a token with that prefix, and Basic credentials as they typed them. */
export function tokenOf({ prefix = '', basic }: TokenSignature, secret: string): string {
  const token = secret.startsWith(prefix) ? secret.slice(prefix.length) : secret
  // No base64 holds a colon.
  return basic === true && token.includes(':') ? toBase64(utf8(token)) : token
}

// A public key is PEM or a JWK; where the key is looked up, or is shared, any text will do.
function isKeyText({ algorithms, secretHolds = 'key' }: JwtSignature, text: string): boolean {
  if (secretHolds !== 'key' || algorithms.some((name) => name.startsWith('HS'))) return true
  return text.includes('-----BEGIN') || isJsonObject(text)
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

function isBasic(token: string): boolean {
  const bytes = fromBase64(token)
  return bytes?.includes(colon) === true
}

const colon = 0x3a

export function decodeSecret(text: string, format: SecretFormat = {}): Uint8Array | undefined {
  const { encoding = 'utf8', prefix = '', withoutPrefix = 'same', pattern } = format
  if (pattern?.test(text) === false) return undefined
  if (!text.startsWith(prefix)) {
    if (withoutPrefix === 'refuse') return undefined
    return withoutPrefix === 'utf8' ? utf8(text) : decode(text, encoding)
  }
  return decode(text.slice(prefix.length), encoding)
}

function decode(text: string, encoding: 'utf8' | 'hex' | 'base64'): Uint8Array | undefined {
  if (encoding === 'utf8') return utf8(text)
  const trimmed = text.trim()
  // People copy base64 without its padding.
  const bytes =
    encoding === 'hex'
      ? fromHex(trimmed)
      : (fromBase64(trimmed) ?? fromBase64(trimmed.padEnd(Math.ceil(trimmed.length / 4) * 4, '=')))
  return bytes === undefined || bytes.length === 0 ? undefined : bytes
}
