import type { CryptoBackend, HmacKey } from './types.ts'

// Named through the function that makes it: the type has a name only where the DOM's types are loaded.
type NativeKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

interface WebHmacKey extends HmacKey {
  readonly native: NativeKey
}

function isWebKey(key: HmacKey): key is WebHmacKey {
  return typeof key.native === 'object' && key.native !== null && 'algorithm' in key.native
}

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
}

// WebCrypto refuses shared memory; the types say so too. Everything else passes without a copy.
function ownBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return isOwn(bytes) ? bytes : new Uint8Array(bytes)
}

function isOwn(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer
}
