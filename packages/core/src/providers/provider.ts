/** A sender as data: what one interpreter (`signature.ts`, `parse.ts`, `handshake.ts`) has to know of it. */
import type { HashName } from '../crypto/types.ts'
import type { HeaderMap } from '../delivery.ts'

/** What a source of an entry states. */
export type Fact =
  | 'signature'
  | 'deliveryId'
  | 'event'
  | 'handshakes'
  | 'ackDeadline'
  | 'retries'
  | 'redelivery'
  | 'maxBody'
  | 'success'
  | 'stop'

/** Who states facts of an entry, and as of when. */
export interface Source {
  /**
   * An address, `npm:package@version` with the file in that package, or `code:` and a name that public code of receivers
   * holds in many places.
   */
  readonly url: string
  /** ISO date for which it is stated. */
  readonly asOf: string
  /** What it states. @default all that the entry says */
  readonly facts?: readonly Fact[]
}

/** Text that a request states, and where. `body` is a path of names joined by dots into the decoded body. */
export type FieldSource =
  | {
      readonly header: string
      /** The header with the names of those that are signed, joined by commas: one that it does not name is nobody's word. */
      readonly listedIn?: string
    }
  | { readonly query: string }
  | { readonly body: string }

/** Reads a text out of a verified request where no path can. */
export type TextReader = (request: ReadableRequest) => string | undefined

/** A text made of what a request states. */
export type TextSource =
  | FieldSource
  /** Always this. */
  | { readonly value: string }
  /** The first that is there. */
  | { readonly anyOf: readonly TextSource[] }
  /** All of them, joined; absent when one of them is. @default separator `:` */
  | { readonly join: readonly TextSource[]; readonly separator?: string }
  /** `sha256:` and the hex digest of the raw body, or of what the signature covers of it. */
  | { readonly digest: 'body' }
  | TextReader

/** `dedup: 'none'`: equal bodies are distinct events and nothing tells them apart, so every request is one. */
export type IdSource = TextSource | { readonly dedup: 'none' }

/** What must hold of a request. Without `equals` it is there and not empty. */
export type Condition = FieldSource &
  (
    | {
        readonly equals: string | number
        readonly absent?: undefined
        readonly includes?: undefined
      }
    | { readonly absent: true; readonly equals?: undefined; readonly includes?: undefined }
    | { readonly includes: string; readonly equals?: undefined; readonly absent?: undefined }
    | { readonly equals?: undefined; readonly absent?: undefined; readonly includes?: undefined }
  )

/** A request whose body is decoded. */
export interface ReadableRequest {
  readonly headers: HeaderMap
  /** Absolute, or a path. */
  readonly url: string
  readonly payload: unknown
}

/** A request whose signature is to be judged. */
export interface SignedRequest {
  readonly method: string
  /** The address that the sender was given. */
  readonly url: string
  readonly headers: HeaderMap
  readonly body: Uint8Array
  readonly nowMs: number
}

/** Where the signature is. Several values stand in several headers, or between separators. */
export interface Carrier {
  /** Lower-case names. */
  readonly header?: string | readonly string[]
  readonly query?: string
  /** Between several values in one header. Blanks beside it are not part of a value. */
  readonly separator?: string
  /** Text before the signature; values without it are somebody else's. @default '' */
  readonly prefix?: string
  /** A value without the prefix counts too, where it is the only one. @default false */
  readonly bare?: boolean
  /** Between several sets in one header, each with a time and signatures of its own: at most 20 in all. */
  readonly groups?: string
  /** The scheme is used only for requests of which this holds. Nothing of them is proved yet, so no `body`. */
  readonly when?: readonly Condition[]
  /** The id that this scheme signs, where another may stand beside it. @default the entry's */
  readonly deliveryId?: TextSource
  /**
   * What the scheme proves the body to be: it is read as that alone, and refused when it is not. `form` where names and
   * values are signed and not the bytes; `json` where an address or a header is signed right beside the body, for what is
   * left when a part is moved is never JSON. @default so for such templates; else the bytes tell
   */
  readonly bodyIs?: BodyKind | ((request: SignedRequest) => BodyKind | undefined)
}

export type BodyKind = 'json' | 'form'

/** How the text of a secret becomes the bytes of a key. */
export interface SecretFormat {
  /** @default 'utf8' */
  readonly encoding?: 'utf8' | 'hex' | 'base64'
  /** Text before the encoded bytes. */
  readonly prefix?: string
  /** What a secret without that prefix is: the bytes in the same encoding, UTF-8 text, or no key of this scheme. @default 'same' */
  readonly withoutPrefix?: 'same' | 'utf8' | 'refuse'
  /** The key is this hash of the bytes. */
  readonly derive?: HashName
  /** What a secret looks like: another one is refused. @default anything */
  readonly pattern?: RegExp
  /**
   * What a receiver's secret must hold beside that, so that nobody else's account is taken for the user's. `verify`
   * leaves it to its caller.
   */
  readonly scope?: RegExp
}

export interface TimestampSource {
  readonly header?: string
  /** A path into the decoded body, read after the signature has proved it. */
  readonly body?: string
  /** Where the header holds more: what separates its parts, and the text before the time. */
  readonly separator?: string
  readonly prefix?: string
  /** `iso`: RFC 3339; without a zone it is UTC. */
  readonly unit: 's' | 'ms' | 'iso' | 'http-date'
  /** How old it may be. The entry judges no age when this is absent. */
  readonly pastMs?: number
  /** How far ahead it may be. @default pastMs */
  readonly futureMs?: number
}

/**
 * The signed content: a text with `{placeholders}`, or a function that gives one or more candidates of which any may
 * be what was signed.
 *
 * `{body}` raw bytes · `{timestamp}` as it was sent · `{header:name}` · `{method}` · `{url}` public address · `{path}`
 * its path and query · `{secret}` the key · `{sha256}` digest of the body, 32 bytes · `{sha256:hex}` · `{crc32}` of the
 * body, decimal · `{form}` names and values of a form, sorted by name
 */
export type Content = string | ContentFunction

export type ContentFunction = (
  request: SignedRequest,
) => ContentCandidates | Promise<ContentCandidates>

export type ContentCandidates = readonly Uint8Array[]

interface SignedContent {
  readonly content: Content
  /** A function as `content` uses the public address. @default false */
  readonly signsUrl?: boolean
  readonly timestamp?: TimestampSource
  readonly secret?: SecretFormat
}

/** A keyed hash. */
export interface HmacSignature extends Carrier, SignedContent {
  readonly scheme: 'hmac'
  readonly hash: HashName
  readonly encoding: 'hex' | 'base64' | 'base64url'
  /** Hex in capitals is the same signature. @default false */
  readonly anyCase?: boolean
}

/** A plain hash of content that holds the secret. */
export interface DigestSignature extends Carrier, SignedContent {
  readonly scheme: 'digest'
  readonly hash: HashName
  readonly encoding: 'hex' | 'base64'
}

/**
 * A signature that the sender's public key proves. The secret is that key: raw bytes (Ed25519) or SPKI in `encoding`
 * of its {@link SecretFormat} (base64 where it says none), or PEM, a certificate too.
 */
export interface PublicKeySignature extends Carrier, SignedContent {
  /** `ecdsa-p256` is DER, with SHA-256. */
  readonly scheme: 'ed25519' | 'ecdsa-p256' | 'rsa'
  /** For `rsa`. @default 'SHA-256' */
  readonly hash?: 'SHA-1' | 'SHA-256'
  readonly encoding: 'hex' | 'base64'
}

/** The secret itself, in a header or the query. It proves the sender and covers no byte of the body. */
export interface TokenSignature extends Carrier {
  readonly scheme: 'token'
  /** Basic authentication: the secret is `user:password`, or that in base64. @default false */
  readonly basic?: boolean
}

/** A JSON Web Token, judged by `verify` of `@webhook-inbox/core/jwt`. */
export interface JwtSignature extends Carrier {
  readonly scheme: 'jwt'
  readonly algorithms: readonly string[]
  readonly issuer?: string | readonly string[]
  /**
   * - `key`: the shared key, or a public key as PEM or JWK
   * - `issuer:key`: both, where the issuer is the name of the key; or the key alone
   * - `audience email`: who the token must be for, and after a blank whose it must be. @default 'key'
   */
  readonly secretHolds?: 'key' | 'issuer:key' | 'audience email'
  /** Where the sender publishes its keys, a JWK Set. */
  readonly keysUrl?: string
  readonly requiredClaims?: readonly string[]
  /** The claim with the hash of the body, and its encoding. Without one the body is not covered. */
  readonly bodyHash?: {
    readonly claim: string
    readonly encoding: 'hex' | 'base64'
    /** An empty body needs no claim. @default false */
    readonly optional?: boolean
  }
  /** The claim with the hex SHA-256 of the address. */
  readonly urlHash?: string
  /** How old `iat` may be. */
  readonly maxAgeMs?: number
  /** @default 0 */
  readonly skewMs?: number
  /** A public key that the sender names proves the request; a secret only narrows whose. @default false */
  readonly keyless?: boolean
  readonly verify: SignatureFunction
}

/** A scheme that only a function can say, for instance a signature inside the body. */
export interface FunctionSignature extends Carrier {
  readonly scheme: 'function'
  readonly secret?: SecretFormat
  /** The content holds the public address. @default false */
  readonly signsUrl?: boolean
  /** A public key that the sender names proves the request; a secret only narrows whose. @default false */
  readonly keyless?: boolean
  /** It judges a time: the option `toleranceMs` says how old that may be. @default false */
  readonly readsTime?: boolean
  /** It asks the option `keys` for the sender's public key. @default false */
  readonly asksKeys?: boolean
  readonly verify: SignatureFunction
}

/** A secret, as given and as the bytes that its format says. */
export interface SecretValue {
  readonly text: string
  readonly bytes: Uint8Array
}

/** Why a request is not the provider's. */
export type VerifyCode =
  | 'signature_missing'
  | 'signature_mismatch'
  | 'timestamp_missing'
  | 'timestamp_invalid'
  | 'timestamp_out_of_tolerance'
  | 'key_unavailable'

/** A public key that the sender names in a request. */
export interface KeyRequest {
  /** The key id, where the sender names one. */
  readonly kid?: string
  /** The address of a certificate, checked to be the sender's. */
  readonly url?: string
}

/** Finds a public key: PEM (key or certificate), or a JWK. */
export type KeySource = (
  request: KeyRequest,
) => PublicKeyText | Promise<PublicKeyText | undefined> | undefined

export type PublicKeyText = string | Readonly<Record<string, unknown>>

export interface SignatureInput {
  readonly request: SignedRequest
  /** Undefined where a public key proves the sender and the user has given none. */
  readonly secret: SecretValue | undefined
  readonly signature: Signature
  readonly keys: KeySource | undefined
  readonly toleranceMs: number | undefined
}

export type SignatureFunction = (input: SignatureInput) => Promise<'valid' | VerifyCode>

export type Signature =
  | HmacSignature
  | DigestSignature
  | PublicKeySignature
  | TokenSignature
  | JwtSignature
  | FunctionSignature

/** One event of several in a request. */
export interface ItemParts {
  /** Absent or unusable: a digest takes its place. */
  readonly id: string | undefined
  readonly event: string | undefined
  readonly payload: unknown
  /** What is digested then: where it came from, too, when the payload alone may say the same again. @default payload */
  readonly identity?: unknown
}

/** The events of a request that holds several, each with an id of its own. */
export type ItemSource =
  | {
      /** The path of the list; '' when the body is the list. */
      readonly list: string
      /** The path in each element to what it wraps. @default the element */
      readonly each?: string
      /** Sources whose `body` is a path into the item. */
      readonly id: TextSource
      readonly event: TextSource
      /** A name in the item that numbers its attempts: no part of what an item without an id is known by. */
      readonly attempt?: string
    }
  | ((payload: unknown) => readonly ItemParts[] | undefined)

/** What an answer holds: text of the request, a constant, or a hex HMAC-SHA256 of a text with the secret. */
export type AnswerValue =
  | FieldSource
  | { readonly value: string | number }
  | { readonly hmac: FieldSource }

/** A request by which the sender tests or confirms an address. It never reaches a handler. */
export interface Handshake {
  /** For events and documentation, for instance `url_verification`. */
  readonly name: string
  /** @default 'POST' */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'OPTIONS'
  /** Whether the sender signs it. An unsigned one is answered without a look at anything else in it. @default true */
  readonly signed?: boolean
  readonly when: readonly Condition[]
  /** Must equal the option `verifyToken`; another or none is answered 403. */
  readonly token?: FieldSource
  readonly answer: {
    /** @default 200 */
    readonly status?: number
    readonly text?: AnswerValue
    readonly json?: Readonly<Record<string, AnswerValue>>
    readonly headers?: Readonly<Record<string, AnswerValue>>
  }
}

/** The sender's own idea of a success. */
export interface SuccessAnswer {
  readonly status: number
  /** @default the library's own JSON */
  readonly body?: string
  /** Of that body. @default none */
  readonly contentType?: string
  /** Of requests like these alone. @default of all */
  readonly when?: readonly Condition[]
}

/**
 * Everything that tells one sender from another, as data. One interpreter reads it; nothing else in the library knows
 * a provider's name.
 */
export interface Provider {
  /** Lower-case name, part of the delivery key. */
  readonly name: string
  /** As the sender writes itself. @default name */
  readonly title?: string
  /** One scheme, or several of which any proves the request. */
  readonly signature: Signature | readonly Signature[]
  readonly deliveryId: IdSource
  readonly event: TextSource
  readonly action?: TextSource
  /** The default endpoint, read from a header; `pattern` says what it must look like. */
  readonly endpoint?: { readonly header: string; readonly pattern: RegExp }
  /** The form field that holds the JSON when the sender posts `application/x-www-form-urlencoded`. */
  readonly formField?: string
  /** A form without {@link formField} is an object of its fields. @default true where there is no `formField` */
  readonly formFields?: boolean
  /** What the signature covers, where that is not the body: digested in its place. @default the body */
  readonly covers?: TextSource
  /** The body may also be JSON texts, one a line, or one text alone: the payload is the list of them. @default false */
  readonly jsonLines?: boolean
  /** Several events in one request: one claim each. */
  readonly items?: ItemSource
  readonly handshakes?: readonly Handshake[]
  /** Events that only test the connection: answered 200 without the handler unless listed in `events`. @default [] */
  readonly pingEvents?: readonly string[]
  /** What the sender sends at most. @default 1 MiB */
  readonly maxBodyBytes?: number
  /** How long the sender waits for an answer. @default 10 s is assumed */
  readonly ackDeadlineMs?: number
  /**
   * Whether the sender tries again by itself. When not, a copy of a running delivery may be answered 2xx. Where it is
   * not known it is true: a 503 loses nothing.
   */
  readonly retriesByItself: boolean
  /** How long a completed id must be remembered: longer than the time in which the sender can send it again. */
  readonly retentionMs: number
  /** Which attempt the sender says this is, and why. */
  readonly retryNumber?: FieldSource
  readonly retryReason?: FieldSource
  readonly success?: SuccessAnswer
  /** Statuses after which the sender never tries again: no answer of ours that another attempt could mend has one. */
  readonly stopStatuses?: readonly number[]
  /** A header that ends the retries: sent with the answer to a delivery that is dead. */
  readonly stopHeader?: readonly [name: string, value: string]
  /** What the secret is, for documentation and error messages. @default 'the signing secret' */
  readonly secretIs?: string
  /** Required of every entry in the catalogue. */
  readonly sources?: readonly Source[]
  /** What is said of the sender and could not be confirmed: no field of the entry says it. */
  readonly unconfirmed?: readonly string[]
}
