/** Hash names as WebCrypto spells them. */
export type HashName = 'SHA-1' | 'SHA-256' | 'SHA-512'

/** A key ready for use; what is in it belongs to the build that made it. */
export interface HmacKey {
  readonly native: unknown
}

/** The interface that the Node build and the WebCrypto build both fill. */
export interface CryptoBackend {
  importHmacKey(hash: HashName, secret: Uint8Array): Promise<HmacKey> | HmacKey
  hmac(hash: HashName, key: HmacKey, data: Uint8Array): Promise<Uint8Array> | Uint8Array
  digest(hash: HashName, data: Uint8Array): Promise<Uint8Array> | Uint8Array
}
