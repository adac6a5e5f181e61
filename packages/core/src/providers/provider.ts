import type { HashName } from '../crypto/types.ts'

/** Where a fact of an entry was read, and when. */
export interface Source {
  readonly url: string
  /** ISO date of the reading. */
  readonly readAt: string
}

/** HMAC over the raw body, sent in one header. */
export interface HmacSignature {
  readonly scheme: 'hmac'
  readonly hash: HashName
  readonly header: string
  /** Text before the signature in the header. */
  readonly prefix: string
  /** Lower-case hex. */
  readonly encoding: 'hex'
  readonly content: 'body'
  /** The secret's characters are the key, as UTF-8. */
  readonly secretEncoding: 'utf8'
}

/** Text that a request states, and where. */
export type FieldSource = { readonly header: string } | { readonly body: string }

/**
 * Everything that tells one sender from another, as data. One interpreter reads it (`interpret.ts`); nothing
 * else in the library knows a provider's name.
 */
export interface Provider {
  /** Lower-case name, part of the delivery key. */
  readonly name: string
  readonly signature: HmacSignature
  readonly deliveryId: FieldSource
  readonly event: FieldSource
  readonly action?: FieldSource
  /** The default endpoint, read from a header; `pattern` says what it must look like. */
  readonly endpoint?: { readonly header: string; readonly pattern: RegExp }
  /** The form field that holds the JSON when the sender posts `application/x-www-form-urlencoded`. */
  readonly formField?: string
  /** Events that only test the connection: answered 200 without the handler unless listed in `events`. */
  readonly pingEvents: readonly string[]
  readonly maxBodyBytes: number
  /** How long the sender waits for an answer. */
  readonly ackDeadlineMs: number
  /** Whether the sender tries again by itself. When not, a copy of a running delivery may be answered 2xx. */
  readonly retriesByItself: boolean
  /** How long a completed id must be remembered: longer than the time in which the sender can send it again. */
  readonly retentionMs: number
  /** Required of every entry in the catalogue. */
  readonly sources?: readonly Source[]
}
