/** Requests by which a sender tests or confirms an address: answered here, and never seen by a handler. */
import { backend } from '#crypto'
import { toHex, utf8 } from '../crypto/bytes.ts'
import type { HeaderMap } from '../delivery.ts'
import { equalText, holds, type Readable, readField, readPath } from './fields.ts'
import type { AnswerValue, Handshake, Provider } from './provider.ts'

/** A handshake as it came. Unless {@link signed} nobody has proved a word of it. */
export interface HandshakeMessage {
  readonly provider: string
  /** For instance `hook_secret`. */
  readonly name: string
  readonly signed: boolean
  readonly headers: HeaderMap
  /** The public address, where it is known. */
  readonly url: string
  /** The decoded body; undefined when there is none. */
  readonly payload: unknown
}

/** What to answer, in plain values. */
export interface HandshakeAnswer {
  readonly name: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export type HandshakeResult =
  | {
      readonly status: 'answer'
      readonly answer: HandshakeAnswer
      /** It holds the token that was agreed on: the sender is who it says. */
      readonly agreed: boolean
    }
  /** Its token is not the one that was agreed on. */
  | { readonly status: 'refused'; readonly name: string }

/** The methods that the entry answers beside POST. */
export function handshakeMethods({ handshakes = [] }: Provider): readonly string[] {
  return [...new Set(handshakes.map(({ method = 'POST' }) => method))].filter(
    (method) => method !== 'POST',
  )
}

/** Whether an unsigned POST may be one. */
export function hasUnsignedPost({ handshakes = [] }: Provider): boolean {
  return handshakes.some(({ method = 'POST', signed = true }) => method === 'POST' && !signed)
}

/** The answer to a handshake; undefined when the request is none. */
export async function answerHandshake(
  { handshakes = [] }: Provider,
  request: Readable & { readonly method: string },
  {
    isSigned,
    verifyToken,
    secret,
  }: {
    readonly isSigned: boolean
    readonly verifyToken: string | undefined
    /** For answers that prove that we know it. */
    readonly secret: string | undefined
  },
): Promise<HandshakeResult | undefined> {
  for (const handshake of handshakes) {
    const { method = 'POST', signed = true, name, token } = handshake
    if (method !== request.method || (signed && method === 'POST') !== isSigned) continue
    if (!holds(handshake.when, request)) continue
    if (token !== undefined) {
      const given = readField(token, request) ?? ''
      if (verifyToken === undefined || !equalText(given, verifyToken))
        return { status: 'refused', name }
    }
    const answer = await answerOf(handshake, request, secret)
    return { status: 'answer', answer, agreed: token !== undefined }
  }
  return undefined
}

async function answerOf(
  { name, answer }: Handshake,
  request: Readable,
  secret: string | undefined,
): Promise<HandshakeAnswer> {
  const headers: Record<string, string> = {}
  for (const [header, value] of Object.entries(answer.headers ?? {}))
    headers[header] = headerText(await answerValue(value, request, secret))
  let body = ''
  if (answer.json !== undefined) {
    headers['content-type'] ??= 'application/json'
    const entries = Object.entries(answer.json).map(async ([key, value]) => [
      key,
      await answerValue(value, request, secret),
    ])
    body = JSON.stringify(Object.fromEntries(await Promise.all(entries)))
  } else if (answer.text !== undefined) {
    // What a stranger wrote is sent back as text that no browser takes for a page.
    headers['content-type'] ??= 'text/plain; charset=utf-8'
    headers['x-content-type-options'] ??= 'nosniff'
    body = String((await answerValue(answer.text, request, secret)) ?? '')
  }
  return { name, status: answer.status ?? 200, headers, body }
}

async function answerValue(
  value: AnswerValue,
  request: Readable,
  secret: string | undefined,
): Promise<unknown> {
  if ('value' in value) return value.value
  if ('hmac' in value) {
    if (secret === undefined) return ''
    const key = await backend.importHmacKey('SHA-256', utf8(secret))
    return toHex(await backend.hmac('SHA-256', key, utf8(readField(value.hmac, request) ?? '')))
  }
  if ('body' in value) return readPath(request.payload, value.body)
  return readField(value, request)
}

// Line breaks in a header would be two headers.
function headerText(value: unknown): string {
  return String(value ?? '').replaceAll(/[^\x20-\x7e]/g, '')
}
