import type { Delivery } from './delivery.ts'
import { optionError } from './errors.ts'
import { type HeadersInput, toHeaderMap } from './headers.ts'
import { bytesOption, durationOption, functionOption } from './options.ts'
import { type ProviderName, providerOf } from './providers/catalogue.ts'
import { entryOf } from './providers/check.ts'
import { decodeBody } from './providers/decode.ts'
import { answerHandshake, type HandshakeResult, handshakeMethods } from './providers/handshake.ts'
import { interpret } from './providers/interpret.ts'
import type { ParseCode, ParsedItem } from './providers/parse.ts'
import type { KeySource, Provider, VerifyCode } from './providers/provider.ts'
import { hasSignature } from './providers/signature.ts'
import { publicUrlOption } from './public-url.ts'
import { type Answer, handshakeAnswer, refusalAnswer } from './response.ts'
import { type Secret, secretLookup } from './secret.ts'

export interface VerifyRequest {
  /** @default 'POST' */
  readonly method?: string
  /** The address that the sender was given, where it signs it; {@link publicUrl} makes it of another. @default '' */
  readonly url?: string
  readonly headers: HeadersInput
  /** The raw bytes as they came: never a parsed or re-serialised body. Required for POST. */
  readonly body?: Uint8Array
  /** Required, except where the sender's own public key proves a request. */
  readonly secret?: Secret
  /** The time to judge timestamps at. @default now */
  readonly now?: Date
  readonly publicUrl?: string
  readonly toleranceMs?: number
  readonly verifyToken?: string
  readonly keys?: KeySource
}

/** A verified delivery, not claimed: of several events all. */
export interface VerifiedDelivery extends Delivery {
  readonly items?: readonly ParsedItem[]
}

export type Verification =
  /** `answer`: the request is a handshake, which wants this answer and no handler. */
  | { readonly valid: true; readonly delivery: VerifiedDelivery; readonly answer?: Answer }
  | {
      readonly valid: false
      readonly code: VerifyCode | ParseCode | 'handshake_refused'
      /** An unsigned handshake: answer it, and believe nothing else of it. Or the refusal of one. */
      readonly answer?: Answer
    }

/**
 * Checks a request's signature and reads the delivery out of it, without a store.
 * @throws WebhookInboxError `ERR_OPTION` for a missing or blank secret, an unknown provider or a body that is not bytes,
 * `ERR_SECRET_UNAVAILABLE` when the secret function fails
 */
export async function verify(
  provider: ProviderName | Provider,
  request: VerifyRequest,
): Promise<Verification> {
  return verifyProvider(providerOf(provider), request)
}

function isAgreed(result: HandshakeResult): boolean {
  return result.status === 'answer' && result.agreed
}

/** {@link verify} for an entry: a bundle of it holds no other provider. */
export async function verifyProvider(
  provider: Provider,
  request: VerifyRequest,
): Promise<Verification> {
  const entry = entryOf(provider)
  if (typeof request !== 'object' || request === null)
    throw optionError('verify: pass the request: verify(provider, { headers, body, secret }).')
  const { method = 'POST', now = new Date(), keys, verifyToken } = request
  if (!(now instanceof Date) || Number.isNaN(now.getTime()))
    throw optionError('verify: "now" must be a Date that is one, for instance new Date().')
  functionOption('verify', 'keys', keys)
  // What is no number would be compared with every age, and none would be too old.
  const toleranceMs =
    request.toleranceMs === undefined
      ? undefined
      : durationOption('verify', 'toleranceMs', request.toleranceMs, 300_000)
  const headers = toHeaderMap(request.headers)
  const given = method === 'POST' ? request.body : (request.body ?? new Uint8Array())
  const body = bytesOption('verify', 'body', given)
  const lookUp = secretLookup('verify', entry, request.secret, { scoped: false })
  const { url: ownUrl = '' } = request
  const url = publicUrlOption('verify', request.publicUrl)?.(ownUrl) ?? ownUrl
  const secrets = await lookUp({ method, url, headers })

  const delivery: Omit<Delivery, 'event' | 'id'> = {
    provider: entry.name,
    endpoint: '',
    action: undefined,
    receivedAt: now,
    headers,
    rawBody: body,
    payload: undefined,
  }
  const handshaken = (result: HandshakeResult, isGenuine: boolean): Verification => {
    if (result.status === 'refused') {
      const code = 'handshake_refused'
      return { valid: false, code, answer: refusalAnswer(code) }
    }
    const answer = handshakeAnswer(result.answer)
    if (!isGenuine) return { valid: false, code: 'signature_missing', answer }
    return { valid: true, delivery: { ...delivery, id: '', event: result.answer.name }, answer }
  }

  if (method !== 'POST' && handshakeMethods(entry).includes(method)) {
    const readable = { method, headers, url, payload: undefined }
    const settings = { isSigned: false, verifyToken, secret: secrets[0]?.text }
    const result = await answerHandshake(entry, readable, settings)
    // Whoever knows the agreed token is the sender; without one anybody may ask.
    if (result !== undefined) return handshaken(result, isAgreed(result))
  }
  const signed = { method, url, headers, body, nowMs: now.getTime() }
  const found = await interpret(entry, secrets, signed, { keys, toleranceMs, verifyToken })
  if (found.status === 'handshake') return handshaken(found.result, true)
  if (found.status === 'refused') {
    if (hasSignature(entry, headers, url)) return { valid: false, code: found.code }
    const { payload } = decodeBody(entry, body)
    const settings = { isSigned: false, verifyToken, secret: undefined }
    const result = await answerHandshake(entry, { method, headers, url, payload }, settings)
    return result === undefined ? { valid: false, code: found.code } : handshaken(result, false)
  }
  const { parsed } = found
  return {
    valid: true,
    delivery: {
      ...delivery,
      endpoint: parsed.endpoint ?? '',
      id: parsed.deliveryId,
      event: parsed.event,
      action: parsed.action,
      payload: parsed.payload,
      ...(parsed.items === undefined ? {} : { items: parsed.items }),
    },
  }
}
