/** The one place that knows HTTP answers: from what became of a request to status, headers and body. */
import { holds, type Readable } from './providers/fields.ts'
import type { HandshakeAnswer } from './providers/handshake.ts'
import type { Provider } from './providers/provider.ts'

/** An HTTP answer in plain values; every adapter writes it in its own way. */
export interface Answer {
  readonly status: number
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The name of the header that every answer carries. */
export const statusHeader = 'webhook-inbox-status'

const refusals = {
  method_not_allowed: [405, 'Only POST is answered here.'],
  not_found: [404, 'There is no webhook at this path.'],
  content_encoding_unsupported: [415, 'The body must be sent without a content encoding.'],
  body_too_large: [413, 'The body is larger than this endpoint accepts.'],
  body_incomplete: [400, 'The body ended before it was complete.'],
  signature_missing: [401, 'The request carries no signature. Is the secret set at the sender?'],
  signature_mismatch: [
    401,
    'The signature does not match the body. Is the secret the same on both sides?',
  ],
  timestamp_missing: [401, 'The request carries no time of its signature.'],
  timestamp_invalid: [401, 'The time of the signature is not readable.'],
  timestamp_out_of_tolerance: [
    401,
    'The signature is too old or too far ahead. Is the clock of this server right?',
  ],
  handshake_failed: [503, 'The handshake could not be taken up. Send it again later.'],
  handshake_refused: [403, 'The verify token is not the one that was agreed on.'],
  key_unavailable: [503, "The sender's public key could not be had. Send the request again later."],
  delivery_id_missing: [400, 'The request carries no delivery id.'],
  delivery_id_invalid: [400, 'The delivery id is not usable.'],
  event_missing: [400, 'The request names no event.'],
  event_invalid: [400, 'The event name is not usable.'],
  endpoint_invalid: [400, 'The endpoint id is not usable.'],
  secret_unavailable: [503, 'The secret could not be looked up. Send the request again later.'],
  internal_error: [503, 'The request could not be judged. Send it again later.'],
  store_unavailable: [503, 'The delivery could not be stored. Send the request again later.'],
  ERR_BODY_CONSUMED: [
    500,
    'The raw body was read before the webhook middleware. Mount the webhook middleware before whatever reads the body. On Express a parser may come first when it keeps the bytes: express.json({ verify: captureRawBody }).',
  ],
} as const

/** Why a request was refused: the stable `code` of the problem document. */
export type RefusalCode = keyof typeof refusals

/** Why a run did not complete: the stable `code` of the problem document. */
export type RunProblemCode =
  | 'handler_failed'
  | 'handler_rejected'
  | 'run_timeout'
  | 'claim_lost'
  | 'transaction_rolled_back'
  | 'completion_unknown'
  | 'items_unfinished'

const runProblems = {
  handler_failed: 'The delivery was not processed. It may be sent again.',
  handler_rejected: 'The delivery cannot be processed.',
  run_timeout: 'The delivery was not processed in time. It may be sent again.',
  claim_lost:
    'The delivery was taken over while it was processed. Send it again to learn its state.',
  transaction_rolled_back: 'The delivery was not processed. It may be sent again.',
  items_unfinished: 'Not every event of the request was processed. Send it again.',
  completion_unknown: 'The outcome could not be read. Send the delivery again to learn its state.',
} as const satisfies Record<RunProblemCode, string>

const titles: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  413: 'Content Too Large',
  415: 'Unsupported Media Type',
  422: 'Unprocessable Content',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
}

/** Seconds a sender is asked to wait when nothing better is known. */
const defaultRetryAfterMs = 1000

export function refusalAnswer(code: RefusalCode, provider?: RefusingProvider): Answer {
  const [usual, detail] = refusals[code]
  // A wrong secret or clock, or a body that was read before, can be mended here: the sender must not give up because of it.
  const status =
    mendable.has(code) && provider?.stopStatuses?.includes(usual) === true ? 503 : usual
  const extra: Record<string, string> =
    status === 405
      ? { allow: ['POST', ...(provider?.methods ?? [])].join(', ') }
      : status === 503
        ? { 'retry-after': retryAfter(defaultRetryAfterMs) }
        : {}
  return problem(status, code, detail, 'refused', extra)
}

/** What a refusal has to know of a provider. */
export interface RefusingProvider {
  readonly stopStatuses?: readonly number[] | undefined
  /** Methods of handshakes, beside POST. */
  readonly methods?: readonly string[]
}

const mendable: ReadonlySet<RefusalCode> = new Set([
  'signature_missing',
  'signature_mismatch',
  'timestamp_missing',
  'timestamp_invalid',
  'timestamp_out_of_tolerance',
  'ERR_BODY_CONSUMED',
])

/** The header that ends the sender's retries. */
export function stopHeaders({
  stopHeader,
}: Pick<Provider, 'stopHeader'>): Readonly<Record<string, string>> | undefined {
  return stopHeader === undefined ? undefined : { [stopHeader[0]]: stopHeader[1] }
}

export function withHeaders(
  answer: Answer,
  headers: Readonly<Record<string, string>> | undefined,
): Answer {
  return headers === undefined ? answer : { ...answer, headers: { ...answer.headers, ...headers } }
}

/** An answer of ours to a success, as the sender wants it. */
export function successAs(
  { success: wanted }: Pick<Provider, 'success'>,
  answer: Answer,
  request: Readable,
): Answer {
  if (wanted === undefined || answer.status < 200 || answer.status >= 300) return answer
  if (wanted.when !== undefined && !holds(wanted.when, request)) return answer
  const { status, body, contentType } = wanted
  if (body === undefined && !isBodiless(status)) return { ...answer, status }
  const { 'content-type': _ours, ...headers } = answer.headers
  return {
    status,
    headers: contentType === undefined ? headers : { ...headers, 'content-type': contentType },
    body: body ?? '',
  }
}

export function handshakeAnswer({ status, headers, body }: HandshakeAnswer): Answer {
  return { status, headers: { ...headers, [statusHeader]: 'handshake' }, body }
}

/** The answer to a request whose events are all known; `busyMs` where one of them is not done. */
export function copiesAnswer(busyMs: number | undefined, deliveryId: string): Answer {
  return busyMs === undefined
    ? success(200, 'completed', deliveryId)
    : comeBack('processing', deliveryId, busyMs)
}

/** The answer to a copy, by the state that the store reported. */
export function copyAnswer(
  copy:
    | { readonly state: 'completed' | 'dead' | 'pending' }
    | {
        readonly state: 'processing'
        readonly leaseMs: number
        readonly inFlight: 'accept' | 'retry'
      }
    | { readonly state: 'waiting'; readonly retryInMs: number },
  deliveryId: string,
): Answer {
  if (copy.state === 'waiting') return comeBack(copy.state, deliveryId, copy.retryInMs)
  if (copy.state === 'processing' && copy.inFlight === 'retry')
    return comeBack(copy.state, deliveryId, copy.leaseMs)
  return success(copy.state === 'completed' ? 200 : 202, copy.state, deliveryId)
}

export function ignoredAnswer(status: 'ignored' | 'ping', deliveryId: string): Answer {
  return success(status === 'ping' ? 200 : 202, status, deliveryId)
}

/** The answer to a run that did its work; `processing` while the store could not be told yet. */
export function doneAnswer(state: 'completed' | 'processing', deliveryId: string): Answer {
  return success(200, state, deliveryId)
}

export function runProblemAnswer(
  status: 422 | 500 | 503,
  code: RunProblemCode,
  state: string,
): Answer {
  const extra: Record<string, string> =
    status === 503 ? { 'retry-after': retryAfter(defaultRetryAfterMs) } : {}
  return problem(status, code, runProblems[code], state, extra)
}

/** An answer as a web-standard response. */
export function toResponse(answer: Answer): Response {
  const { status, headers, body } = answer
  return new Response(isBodiless(status) ? null : body, { status, headers })
}

function isBodiless(status: number): boolean {
  return status === 204 || status === 304
}

function success(status: 200 | 202, state: string, deliveryId: string): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', [statusHeader]: state },
    body: JSON.stringify({ status: state, deliveryId }),
  }
}

// 503 and not 409: every sender that retries by itself does so after a 503.
function comeBack(state: string, deliveryId: string, waitMs: number): Answer {
  return {
    status: 503,
    headers: {
      'content-type': 'application/problem+json',
      'retry-after': retryAfter(waitMs),
      [statusHeader]: state,
    },
    body: JSON.stringify({
      title: titles[503],
      status: 503,
      code: state === 'waiting' ? 'retry_not_due' : 'in_flight',
      detail:
        state === 'waiting'
          ? 'The next attempt is not due yet.'
          : 'The delivery is being processed.',
      deliveryId,
    }),
  }
}

function problem(
  status: number,
  code: string,
  detail: string,
  state: string,
  extra: Readonly<Record<string, string>>,
): Answer {
  return {
    status,
    headers: { 'content-type': 'application/problem+json', ...extra, [statusHeader]: state },
    body: JSON.stringify({ title: titles[status], status, code, detail }),
  }
}

function retryAfter(waitMs: number): string {
  return String(Math.max(1, Math.ceil(waitMs / 1000)))
}
