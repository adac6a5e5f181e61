/** Hash names as WebCrypto spells them. */
export type HashName = 'SHA-1' | 'SHA-256' | 'SHA-512'

/** A key ready for use; what is in it belongs to the build that made it. */
export interface HmacKey {
  readonly native: unknown
}

/** How a public key proves a signature. An ECDSA signature is 64 bytes, `r` and `s`. */
export type PublicKeyAlgorithm = 'ed25519' | 'ecdsa-p256' | 'rsa-sha1' | 'rsa-sha256'

export interface PublicKey {
  readonly native: unknown
}

/** The interface that the Node build and the WebCrypto build both fill. */
export interface CryptoBackend {
  importHmacKey(hash: HashName, secret: Uint8Array): Promise<HmacKey> | HmacKey
  hmac(hash: HashName, key: HmacKey, data: Uint8Array): Promise<Uint8Array> | Uint8Array
  digest(hash: HashName, data: Uint8Array): Promise<Uint8Array> | Uint8Array
  /** @param spki the key in DER. Throws or rejects for what is none of that algorithm */
  importPublicKey(algorithm: PublicKeyAlgorithm, spki: Uint8Array): Promise<PublicKey> | PublicKey
  verify(
    algorithm: PublicKeyAlgorithm,
    key: PublicKey,
    signature: Uint8Array,
    data: Uint8Array,
  ): Promise<boolean> | boolean
}
