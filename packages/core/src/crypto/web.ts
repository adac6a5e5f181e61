import type { CryptoBackend, HmacKey, PublicKey, PublicKeyAlgorithm } from './types.ts'

// Named through the function that makes it: the type has a name only where the DOM's types are loaded.
type NativeKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

interface WebKey {
  readonly native: NativeKey
}

function isWebKey(key: HmacKey | PublicKey): key is WebKey {
  return typeof key.native === 'object' && key.native !== null && 'algorithm' in key.native
}

const algorithms = {
  ed25519: { name: 'Ed25519' },
  'ecdsa-p256': { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  'rsa-sha1': { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-1' },
  'rsa-sha256': { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
} as const satisfies Record<
  PublicKeyAlgorithm,
  { readonly name: string; readonly namedCurve?: string; readonly hash?: string }
>

export const backend: CryptoBackend = {
  async importHmacKey(hash, secret) {
    return {
      native: await crypto.subtle.importKey(
        'raw',
        ownBuffer(secret),
        { name: 'HMAC', hash },
        false,
        ['sign'],
      ),
    }
  },
  async hmac(hash, key, data) {
    if (!isWebKey(key))
      throw new TypeError(`This HMAC-${hash} key was made by another crypto build.`)
    return new Uint8Array(await crypto.subtle.sign('HMAC', key.native, ownBuffer(data)))
  },
  async digest(hash, data) {
    return new Uint8Array(await crypto.subtle.digest(hash, ownBuffer(data)))
  },
  async importPublicKey(algorithm, spki) {
    return {
      native: await crypto.subtle.importKey('spki', ownBuffer(spki), algorithms[algorithm], false, [
        'verify',
      ]),
    }
  },
  async verify(algorithm, key, signature, data) {
    if (!isWebKey(key)) throw new TypeError('This public key was made by another crypto build.')
    return crypto.subtle.verify(
      algorithms[algorithm],
      key.native,
      ownBuffer(signature),
      ownBuffer(data),
    )
  },
}

// WebCrypto refuses shared memory; the types say so too. Everything else passes without a copy.
function ownBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return isOwn(bytes) ? bytes : new Uint8Array(bytes)
}

function isOwn(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer
}
