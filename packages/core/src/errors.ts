/**
 * Every error this library throws, by code. What a sender can cause is never in this table: that is a
 * value (see {@link RefusalCode}). These are mistakes of the caller, or a store that is broken.
 */
export const errorCodes = {
  ERR_OPTION: 'An option is missing, unknown or of the wrong kind.',
  ERR_BODY_CONSUMED: 'The raw body was read before the webhook middleware could read it.',
  ERR_NO_WEBHOOK: 'There is no verified webhook on this request.',
  ERR_STORE_UNAVAILABLE: 'The store could not be reached, or did not answer in time.',
  ERR_STORE_SETUP: 'The store lacks its schema, or cannot hold one.',
  ERR_CLAIM_LOST: 'The claim is held by somebody else by now; nothing may be settled with it.',
  ERR_TRANSACTION: 'The value handed to completeIn() is not a transaction this store can use.',
  ERR_SECRET_UNAVAILABLE: 'The secret function threw, or returned no usable secret.',
  ERR_PERMANENT: 'The handler says that this delivery can never be processed.',
  ERR_RETRY: 'The handler says when this delivery is to be run again.',
} as const

/** The stable code of an error thrown by this library. Compare `error.code`, not classes. */
export type ErrorCode = keyof typeof errorCodes

/** The one error class of this library. Compare by {@link code}: two copies of the package may be loaded. */
export class WebhookInboxError extends Error {
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options)
    this.name = 'WebhookInboxError'
    this.code = code
  }
}

/**
 * Thrown by a handler that knows a retry cannot help: the delivery becomes `dead` and is never run again
 * by itself. Frameworks answer it with 422 and do not show its message.
 */
export class PermanentError extends WebhookInboxError {
  /** Read by the error handlers of Express and Koa. */
  readonly status = 422
  /** Read by Koa and http-errors: the message stays on the server. */
  readonly expose = false

  constructor(reason: string, options?: { readonly cause?: unknown }) {
    super('ERR_PERMANENT', reason, options)
    this.name = 'PermanentError'
  }

  /** Called by Hono's error handler. */
  getResponse(): Response {
    return new Response('Unprocessable Content', { status: this.status })
  }
}

/**
 * Thrown by a handler that knows when another attempt can help, for instance after a `Retry-After` of an API that it
 * calls. A worker waits that long in place of its backoff; inline the sender's schedule decides.
 */
export class RetryError extends WebhookInboxError {
  readonly retryInMs: number

  /** @throws WebhookInboxError `ERR_OPTION` when `retryInMs` is no number of milliseconds from 0 */
  constructor(
    reason: string,
    { retryInMs, cause }: { readonly retryInMs: number; readonly cause?: unknown },
  ) {
    super('ERR_RETRY', reason, { cause })
    this.name = 'RetryError'
    if (typeof retryInMs !== 'number' || !(retryInMs >= 0))
      throw optionError('RetryError: "retryInMs" must be a number of milliseconds from 0.')
    this.retryInMs = retryInMs
  }
}

/** Whether a thrown value says "never retry". Recognised by code, so that a second copy of the package counts. */
export function isPermanentError(error: unknown): boolean {
  return hasCode(error, 'ERR_PERMANENT')
}

/** Whether a thrown value carries the given error code. */
export function hasCode(error: unknown, code: ErrorCode): boolean {
  try {
    return typeof error === 'object' && error !== null && 'code' in error && error.code === code
  } catch {
    // A getter or a proxy that throws: anything can be thrown, and reading it must not hide that it was.
    return false
  }
}

/** A caller's mistake in an option, with a message that says what to write instead. */
export function optionError(message: string): WebhookInboxError {
  return new WebhookInboxError('ERR_OPTION', message)
}

/**
 * The typed error that a store throws when it cannot be reached or cannot answer: distinct from every result.
 * Stores wrap the driver's error in it and keep that as `cause`.
 */
export function storeUnavailable(message: string, cause?: unknown): WebhookInboxError {
  return new WebhookInboxError('ERR_STORE_UNAVAILABLE', message, { cause })
}

/**
 * Throws an `ERR_OPTION` for every name that is not in `known`, with the nearest known name as a suggestion, and
 * for what is no object at all: a number would have no names, and pass.
 */
export function rejectUnknownOptions(
  where: string,
  options: object,
  known: readonly string[],
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw optionError(`${where}: pass an object. Known options: ${known.join(', ')}.`)
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue
    const near = nearest(name, known)
    throw optionError(
      `${where}: unknown option "${name}".${near === undefined ? '' : ` Did you mean "${near}"?`} Known options: ${known.join(', ')}.`,
    )
  }
}

/** The known name nearest to a mistyped one, when it is near enough to be meant. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const lower = name.toLowerCase()
  const longer = known.find(
    (candidate) => lower.length > 2 && candidate.toLowerCase().startsWith(lower),
  )
  if (longer !== undefined) return longer
  let best: string | undefined
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(lower, candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const current = [i]
    for (let j = 1; j <= b.length; j++) {
      const substituted = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      current.push(Math.min(substituted, (previous[j] ?? 0) + 1, (current[j - 1] ?? 0) + 1))
    }
    previous = current
  }
  return previous[b.length] ?? 0
}
