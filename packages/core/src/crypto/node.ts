import {
  createHash,
  createHmac,
  createPublicKey,
  createSecretKey,
  type KeyObject,
  verify,
} from 'node:crypto'
import type { CryptoBackend, HashName, HmacKey, PublicKey, PublicKeyAlgorithm } from './types.ts'

// OpenSSL's synchronous calls: several times faster than WebCrypto for bodies of webhook size.
const names = {
  'SHA-1': 'sha1',
  'SHA-256': 'sha256',
  'SHA-512': 'sha512',
} as const satisfies Record<HashName, string>

const publicKeys = {
  ed25519: { type: 'ed25519', hash: undefined },
  'ecdsa-p256': { type: 'ec', hash: 'sha256' },
  'rsa-sha1': { type: 'rsa', hash: 'sha1' },
  'rsa-sha256': { type: 'rsa', hash: 'sha256' },
} as const satisfies Record<
  PublicKeyAlgorithm,
  { readonly type: string; readonly hash: string | undefined }
>

interface NodeKey {
  readonly native: KeyObject
}

function isNodeKey(key: HmacKey | PublicKey): key is NodeKey {
  // A KeyObject of either kind; a CryptoKey has an algorithm.
  const { native } = key
  return (
    typeof native === 'object' && native !== null && 'export' in native && !('algorithm' in native)
  )
}

export const backend: CryptoBackend = {
  importHmacKey: (_hash, secret) => ({ native: createSecretKey(secret) }),
  hmac(hash, key, data) {
    if (!isNodeKey(key)) throw new TypeError('This HMAC key was made by another crypto build.')
    return createHmac(names[hash], key.native).update(data).digest()
  },
  digest: (hash, data) => createHash(names[hash]).update(data).digest(),
  importPublicKey(algorithm, spki) {
    const native = createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' })
    const curve = native.asymmetricKeyDetails?.namedCurve
    if (
      native.asymmetricKeyType !== publicKeys[algorithm].type ||
      (algorithm === 'ecdsa-p256' && curve !== 'prime256v1')
    )
      throw new TypeError(`This is no ${algorithm} key.`)
    return { native }
  },
  verify(algorithm, key, signature, data) {
    if (!isNodeKey(key)) throw new TypeError('This public key was made by another crypto build.')
    const { hash } = publicKeys[algorithm]
    return verify(hash, data, { key: key.native, dsaEncoding: 'ieee-p1363' }, signature)
  },
}
