/** Stored bytes, sealed with AES-256-GCM: what the database holds tells nothing of a payload or its headers. */
import { utf8 } from './crypto/bytes.ts'
import type { DeliveryKey } from './delivery.ts'
import { optionError, rejectUnknownOptions } from './errors.ts'
import type { StoredPayload } from './store.ts'

export interface EncryptionOptions {
  /**
   * 256-bit keys by their id: 32 bytes, or their base64. While rotating, first hand the new key to every process, then
   * make it `current`; drop the old one when nothing sealed with it is left.
   */
  readonly keys: Readonly<Record<string, Uint8Array | string>>
  /** The id of the key that seals; the others only open. */
  readonly current: string
}

/** Why a sealed payload cannot be opened: a stable code for the dead letter. */
export type UnsealCode =
  /** No key of that id is here. */
  | 'seal_key_missing'
  /** The key of that id is another, or the bytes were changed or moved to another record. */
  | 'seal_broken'

export interface Seal {
  seal(key: DeliveryKey, payload: StoredPayload): Promise<StoredPayload>
  unseal(key: DeliveryKey, payload: StoredPayload): Promise<StoredPayload | UnsealCode>
}

// No request can carry it: a colon cannot begin the name of a header.
const sealHeader = ':sealed'
const version = 1
const ivBytes = 12
const prefixBytes = 1 + ivBytes

type NativeKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>

/** Checks the keys once. @throws WebhookInboxError `ERR_OPTION` */
export function createSeal(where: string, options: EncryptionOptions): Seal {
  rejectUnknownOptions(`${where}: "encryption"`, options, ['keys', 'current'])
  const { keys, current } = options
  if (typeof keys !== 'object' || keys === null)
    throw optionError(`${where}: "encryption.keys" must be an object of key ids and keys.`)
  const imported = new Map(
    Object.entries(keys).map(([id, key]) => [id, lazyKey(keyBytes(where, id, key))] as const),
  )
  const sealingKey = imported.get(current)
  if (sealingKey === undefined) {
    throw optionError(
      `${where}: "encryption.current" must be the id of one of "encryption.keys" (${[...imported.keys()].join(', ')}).`,
    )
  }
  const getSealingKey = sealingKey

  return {
    async seal(key, { body, headers }) {
      const head = utf8(JSON.stringify(headers))
      const plain = new Uint8Array(4 + head.length + body.length)
      new DataView(plain.buffer).setUint32(0, head.length)
      plain.set(head, 4)
      plain.set(body, 4 + head.length)
      const iv = crypto.getRandomValues(new Uint8Array(ivBytes))
      const cipher = await crypto.subtle.encrypt(parameters(iv, key), await getSealingKey(), plain)
      const sealed = new Uint8Array(prefixBytes + cipher.byteLength)
      sealed[0] = version
      sealed.set(iv, 1)
      sealed.set(new Uint8Array(cipher), prefixBytes)
      return { body: sealed, headers: { [sealHeader]: current } }
    },

    async unseal(key, payload) {
      const id = payload.headers[sealHeader]
      if (id === undefined) return payload
      const getKey = imported.get(id)
      if (getKey === undefined) return 'seal_key_missing'
      if (payload.body[0] !== version) return 'seal_broken'
      // A copy, for WebCrypto refuses shared memory.
      const sealed = new Uint8Array(payload.body)
      try {
        const plain = new Uint8Array(
          await crypto.subtle.decrypt(
            parameters(sealed.slice(1, prefixBytes), key),
            await getKey(),
            sealed.subarray(prefixBytes),
          ),
        )
        const bodyAt = 4 + new DataView(plain.buffer).getUint32(0)
        const head: unknown = JSON.parse(new TextDecoder().decode(plain.subarray(4, bodyAt)))
        return { body: plain.slice(bodyAt), headers: headersOf(head) }
      } catch {
        return 'seal_broken'
      }
    },
  }
}

/** Opens what may be sealed, with the keys that there are. */
export async function openSealed(
  seal: Seal | undefined,
  key: DeliveryKey,
  payload: StoredPayload,
): Promise<StoredPayload | UnsealCode> {
  if (seal !== undefined) return seal.unseal(key, payload)
  return payload.headers[sealHeader] === undefined ? payload : 'seal_key_missing'
}

function keyBytes(where: string, id: string, key: unknown): Uint8Array<ArrayBuffer> {
  const bytes = typeof key === 'string' ? fromBase64(key) : key
  if (id !== '' && bytes instanceof Uint8Array && bytes.length === 32) return new Uint8Array(bytes)
  throw optionError(
    `${where}: "encryption.keys" must hold keys of 32 bytes, or their base64, by non-empty ids; the one of "${id}" is none. Make one with: openssl rand -base64 32`,
  )
}

function fromBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  } catch {
    return undefined
  }
}

function lazyKey(bytes: Uint8Array<ArrayBuffer>): () => Promise<NativeKey> {
  let key: Promise<NativeKey> | undefined
  return () => {
    key ??= crypto.subtle.importKey('raw', bytes, 'AES-GCM', false, ['encrypt', 'decrypt'])
    return key
  }
}

// The record's key is part of what is sealed: bytes moved to another record do not open.
function parameters(iv: Uint8Array<ArrayBuffer>, { provider, endpoint, deliveryId }: DeliveryKey) {
  const context = JSON.stringify(['webhook-inbox', version, provider, endpoint, deliveryId])
  return { name: 'AES-GCM', iv, additionalData: new TextEncoder().encode(context) }
}

function headersOf(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== 'object' || value === null) throw new TypeError('Sealed headers are none.')
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, text]) =>
      typeof text === 'string' ? [[name, text] as const] : [],
    ),
  )
}
