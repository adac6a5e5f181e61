/** request → verify → parse → claim → receipt. Knows no framework, no SQL and no retry policy. */

import { backend } from '#crypto'
import { toHex, utf8 } from './crypto/bytes.ts'
import type { HmacKey } from './crypto/types.ts'
import type { ClaimedDelivery, DeliveryKey, HeaderMap } from './delivery.ts'
import { isPermanentError, optionError, rejectUnknownOptions } from './errors.ts'
import { type HeadersInput, toHeaderMap } from './headers.ts'
import {
  type Claim,
  checkStore,
  type Inbox,
  inboxFor,
  type PolicyOptions,
  policyOptionNames,
} from './inbox.ts'
import { type DeliveryRef, swallow } from './observer.ts'
import { booleanOption, functionOption, retentionOption } from './options.ts'
import { isSettleAs, type RunEnd, type SettleAs, type SettleBy, settleAs } from './outcome.ts'
import { type ProviderName, providerOf } from './providers/catalogue.ts'
import {
  type ParsedRequest,
  parseRequest,
  signatureOf,
  verifySignature,
} from './providers/interpret.ts'
import type { Provider } from './providers/provider.ts'
import {
  type Answer,
  completedAnswer,
  copyAnswer,
  ignoredAnswer,
  type RefusalCode,
  refusalAnswer,
  runProblemAnswer,
} from './response.ts'
import { type Secret, secretLookup } from './secret.ts'
import type { Store } from './store.ts'

/** The bytes of a body, or why they cannot be had. */
export type BodyResult =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | {
      readonly ok: false
      readonly code: 'body_too_large' | 'body_incomplete' | 'ERR_BODY_CONSUMED'
    }

/** A request in plain values. */
export interface ReceiverRequest {
  readonly method: string
  /** Path or absolute URL, as the framework shows it. */
  readonly url: string
  readonly headers: HeadersInput
  /** The raw bytes, or a function that reads at most `maxBytes` of them when it is asked. */
  readonly body: Uint8Array | ((maxBytes: number) => Promise<BodyResult>)
}

/** Runs for a claimed delivery: returning completes it, throwing fails it. `context` is the adapter's own. */
export type Handler<Context = unknown, Payload = unknown> = (
  webhook: ClaimedDelivery<Payload>,
  context: Context,
) => unknown

/** Options that every adapter shares. */
export interface ReceiverOptions<Context = unknown, Payload = unknown> extends PolicyOptions {
  /** A name from the catalogue, or an entry. */
  readonly provider: ProviderName | Provider
  readonly secret: Secret
  /** Where claims are kept. Excludes `inbox`. */
  readonly store?: Store
  /** An inbox shared by several endpoints; lease, retry, retention and observer are then its own. Excludes `store`. */
  readonly inbox?: Inbox
  /** Tells two webhooks of one provider apart; part of the key. @default the provider's own header, or '' */
  readonly endpoint?: string
  /** Only these events run (`push`, `pull_request.opened`); others are answered 202 `ignored`. @default all */
  readonly events?: readonly string[]
  /** Runs the delivery in place of a route handler: its promise decides, not a status. */
  readonly handler?: Handler<Context, Payload>
  /** @default what the provider sends at most (GitHub: 25 MiB) */
  readonly maxBodyBytes?: number
  /**
   * The answer to a copy while the first run goes on: `accept` 202, `retry` 503 + `Retry-After`.
   * @default `retry` for senders that retry by themselves, else `accept`
   */
  readonly inFlight?: 'accept' | 'retry'
  /** Overrides what the final status of a route handler means. */
  readonly settleBy?: SettleBy
  /** Lets a redelivery run a dead delivery again. @default false */
  readonly redeliverDead?: boolean
  /**
   * Uses SHA-256 of the body in the key in place of the sender's id, which no signature covers: a captured body
   * cannot be replayed under a new id. Equal bodies then count as copies. @default false
   */
  readonly replayGuard?: boolean
  /** Hears what handlers throw and what the store throws. Never changes an answer. */
  readonly onError?: (error: unknown) => void
}

/** The names of {@link ReceiverOptions}, for checks in adapters. */
export const receiverOptionNames: readonly (keyof ReceiverOptions)[] = [
  'provider',
  'secret',
  'store',
  'inbox',
  'endpoint',
  'events',
  'handler',
  'maxBodyBytes',
  'inFlight',
  'settleBy',
  'redeliverDead',
  'replayGuard',
  'onError',
  ...policyOptionNames,
]

/** What became of a request. Everything but `claimed` is final and has its answer. */
export type Receipt<Payload = unknown> =
  | ClaimedReceipt<Payload>
  | { readonly status: 'refused'; readonly code: RefusalCode; readonly answer: Answer }
  | {
      readonly status:
        | 'completed'
        | 'processing'
        | 'pending'
        | 'waiting'
        | 'dead'
        | 'failed'
        | 'lost'
        | 'ignored'
        | 'ping'
      readonly deliveryId: string
      readonly answer: Answer
    }

/** A delivery to be run now, by the caller, who then settles it. */
export interface ClaimedReceipt<Payload = unknown> {
  readonly status: 'claimed'
  readonly webhook: ClaimedDelivery<Payload>
  /** Settles by the final answer. The first call decides; later ones get the same settlement. Never rejects. */
  settle(end: RunEnd): Promise<Settlement>
  /** Called once when `maxRunMs` is over and the delivery was settled as failed. */
  onTimeout(callback: (settlement: Settlement) => void): void
  /** Tells the observer that the answer could not be held until it was settled. */
  reportUnheld(): void
}

/** How a claim ended, for the adapter that has an answer in its hands. */
export interface Settlement {
  readonly state: 'completed' | 'failed' | 'dead' | 'lost' | 'processing'
  /** Send this in place of the handler's own answer. */
  readonly replace?: Answer
}

export interface Receiver<Context = unknown, Payload = unknown> {
  readonly provider: Provider
  readonly inbox: Inbox
  readonly handler: Handler<Context, Payload> | undefined
  /** Never rejects for what a sender can cause. With a `handler` the receipt is final. */
  receive(request: ReceiverRequest, context: Context): Promise<Receipt<Payload>>
}

/**
 * Makes the framework-free receiver that all adapters share.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function createReceiver<Context = unknown, Payload = unknown>(
  options: ReceiverOptions<Context, Payload>,
): Receiver<Context, Payload> {
  const settings = readOptions(options)
  const { provider, inbox, handler, lookUpSecret } = settings
  const { observer } = inbox
  if (settings.retentionIsShort)
    observer({ type: 'warning', code: 'retention_short', provider: provider.name })

  function refuse(code: RefusalCode): Receipt<Payload> {
    const answer = refusalAnswer(code)
    observer({ type: 'refused', provider: provider.name, code, status: answer.status })
    return { status: 'refused', code, answer }
  }

  async function receive(request: ReceiverRequest, context: Context): Promise<Receipt<Payload>> {
    const receivedAt = new Date()
    const headers = toHeaderMap(request.headers)
    if (request.method !== 'POST') return refuse('method_not_allowed')
    const encoding = headers['content-encoding']?.trim().toLowerCase()
    if (encoding !== undefined && encoding !== '' && encoding !== 'identity')
      return refuse('content_encoding_unsupported')
    if (Number(headers['content-length'] ?? 0) > settings.maxBodyBytes)
      return refuse('body_too_large')
    if (signatureOf(provider, headers) === undefined) return refuse('signature_missing')

    const body = await readBody(request.body)
    if (!body.ok) return refuse(body.code)

    let keys: readonly HmacKey[]
    try {
      keys = await lookUpSecret({ method: request.method, url: request.url, headers })
    } catch (error) {
      settings.onError(error)
      return refuse('secret_unavailable')
    }
    const matched = await verifySignature(provider, keys, headers, body.bytes)
    if (typeof matched === 'string') return refuse(matched)
    const key = keys[matched]
    const parsed = parseRequest(provider, headers, body.bytes)
    if (typeof parsed === 'string') return refuse(parsed)
    if (key === undefined) return refuse('signature_mismatch')

    return admit(
      { receivedAt, headers, rawBody: body.bytes, parsed, key, secretIndex: matched },
      context,
    )
  }

  async function readBody(body: ReceiverRequest['body']): Promise<BodyResult> {
    if (typeof body === 'function') {
      try {
        return await body(settings.maxBodyBytes)
      } catch (error) {
        settings.onError(error)
        return { ok: false, code: 'body_incomplete' }
      }
    }
    return body.length > settings.maxBodyBytes
      ? { ok: false, code: 'body_too_large' }
      : { ok: true, bytes: body }
  }

  // From here on the request is the provider's.
  async function admit(verified: Verified, context: Context): Promise<Receipt<Payload>> {
    const { parsed, rawBody } = verified
    const digest = toHex(await backend.digest('SHA-256', rawBody))
    const key = await keyOf(verified, digest)
    const ref: DeliveryRef = {
      provider: provider.name,
      endpoint: key.endpoint,
      deliveryId: parsed.deliveryId,
      event: parsed.event,
      ...(parsed.action === undefined ? {} : { action: parsed.action }),
    }
    observer({ type: 'verified', secretIndex: verified.secretIndex, ...ref })
    if (!parsed.readable) observer({ type: 'warning', code: 'payload_unreadable', ...ref })
    if (
      provider.endpoint !== undefined &&
      settings.endpoint === undefined &&
      parsed.endpoint === undefined &&
      !settings.replayGuard
    ) {
      observer({ type: 'warning', code: 'endpoint_missing', ...ref })
    }
    if (!isWanted(parsed)) {
      const status = provider.pingEvents.includes(parsed.event) ? 'ping' : 'ignored'
      observer({ type: status, ...ref })
      return {
        status,
        deliveryId: parsed.deliveryId,
        answer: ignoredAnswer(status, parsed.deliveryId),
      }
    }

    const opened = await inbox.open({
      key,
      ref,
      fingerprint: digest,
      minRetentionMs: provider.retentionMs,
      redeliverDead: settings.redeliverDead,
    })
    const { deliveryId } = parsed
    switch (opened.status) {
      case 'unavailable':
        return refuse('store_unavailable')
      case 'claimed': {
        const webhook = await deliveryOf(verified, key, opened.claim)
        const receipt = claimedReceipt(webhook, opened.claim, ref)
        return handler === undefined ? receipt : runHandler(handler, receipt, context)
      }
      case 'processing': {
        const copy = {
          state: opened.status,
          leaseMs: opened.leaseMs,
          inFlight: settings.inFlight,
        } as const
        return { status: opened.status, deliveryId, answer: copyAnswer(copy, deliveryId) }
      }
      case 'waiting': {
        const copy = { state: opened.status, retryInMs: opened.retryInMs } as const
        return { status: opened.status, deliveryId, answer: copyAnswer(copy, deliveryId) }
      }
      default:
        return {
          status: opened.status,
          deliveryId,
          answer: copyAnswer({ state: opened.status }, deliveryId),
        }
    }
  }

  function isWanted({ event, action }: ParsedRequest): boolean {
    if (settings.events === undefined) return !provider.pingEvents.includes(event)
    return (
      settings.events.has(event) ||
      (action !== undefined && settings.events.has(`${event}.${action}`))
    )
  }

  async function keyOf({ parsed, key }: Verified, digest: string): Promise<DeliveryKey> {
    if (!settings.replayGuard) {
      const endpoint = settings.endpoint ?? parsed.endpoint ?? ''
      return { provider: provider.name, endpoint, deliveryId: parsed.deliveryId }
    }
    // The scope tells tenants apart that share an endpoint; no header may take part in it.
    const scope = toHex(
      await backend.hmac(provider.signature.hash, key, utf8('webhook-inbox replay guard')),
    ).slice(0, 16)
    return {
      provider: provider.name,
      endpoint: settings.endpoint ?? '',
      deliveryId: `sha256:${digest}:${scope}`,
    }
  }

  async function deliveryOf(
    verified: Verified,
    key: DeliveryKey,
    claim: Claim,
  ): Promise<RunningDelivery> {
    const { parsed } = verified
    const seed = toHex(
      await backend.digest(
        'SHA-256',
        utf8(JSON.stringify([key.provider, key.endpoint, key.deliveryId])),
      ),
    ).slice(0, 32)
    const failure: Failure = { failed: false, retryable: true }
    return {
      failure,
      provider: provider.name,
      endpoint: key.endpoint,
      id: parsed.deliveryId,
      event: parsed.event,
      action: parsed.action,
      receivedAt: verified.receivedAt,
      headers: verified.headers,
      rawBody: verified.rawBody,
      payload: parsed.payload,
      key,
      attempt: claim.attempt,
      fence: claim.hold.fence,
      signal: claim.signal,
      idempotencyKey: (purpose) => idempotencyKeyOf(seed, purpose),
      completeIn: (tx) => claim.completeIn(tx),
      renew: () => claim.renew(),
      fail(error, { retryable = true } = {}) {
        failure.failed = true
        failure.retryable = retryable
        if (error !== undefined) settings.onError(error)
      },
    }
  }

  function claimedReceipt(
    webhook: RunningDelivery,
    claim: Claim,
    ref: DeliveryRef,
  ): ClaimedReceipt<Payload> {
    const startedAtMs = performance.now()
    const { attempt } = claim
    const { failure, ...shown } = webhook
    let settlement: Promise<Settlement> | undefined
    const timeoutCallbacks: ((settlement: Settlement) => void)[] = []

    async function complete(): Promise<Settlement> {
      const result = await claim.complete()
      if (result === 'rolled_back') {
        await failed('transaction_rolled_back', false)
        return {
          state: 'failed',
          replace: runProblemAnswer(503, 'transaction_rolled_back', 'failed'),
        }
      }
      const durationMs = performance.now() - startedAtMs
      if (result === 'lost') {
        observer({ type: 'claim_lost', attempt, durationMs, ...ref })
        return { state: 'lost', replace: runProblemAnswer(503, 'claim_lost', 'lost') }
      }
      // The effect has happened, so the handler's own answer goes out; the inbox goes on telling the store.
      if (result === 'unavailable') return { state: 'processing' }
      observer({ type: 'completed', attempt, durationMs, ...ref })
      return { state: 'completed' }
    }

    async function failed(
      code: string,
      dead: boolean,
    ): Promise<'failed' | 'dead' | 'lost' | 'completed'> {
      const result = await claim.fail({ code, dead })
      const durationMs = performance.now() - startedAtMs
      if (result === 'lost') {
        observer({ type: 'claim_lost', attempt, durationMs, ...ref })
        return 'lost'
      }
      if (result === 'completed') {
        observer({ type: 'completed', attempt, durationMs, ...ref })
        return 'completed'
      }
      // Not stored yet: the inbox goes on telling the store, and the observer has heard so.
      if (result === 'unavailable') return dead ? 'dead' : 'failed'
      observer({ type: result, attempt, durationMs, code, ...ref })
      return result
    }

    function askSettleBy(status: number): SettleAs | undefined {
      try {
        const chosen = settings.settleBy?.(status)
        if (chosen === undefined || isSettleAs(chosen)) return chosen
        throw optionError(`settleBy must return 'complete', 'retry', 'dead' or undefined.`)
      } catch (error) {
        settings.onError(error)
        return undefined
      }
    }

    async function settleOnce(end: RunEnd | 'timeout'): Promise<Settlement> {
      const durationMs = performance.now() - startedAtMs
      if (durationMs > provider.ackDeadlineMs)
        observer({ type: 'warning', code: 'ack_deadline_passed', ...ref })
      if (end === 'timeout') {
        const state = await failed('run_timeout', false)
        return { state, replace: runProblemAnswer(503, 'run_timeout', state) }
      }
      let decision = settleAs(end, askSettleBy(end.status))
      if (failure.failed) decision = failure.retryable ? 'retry' : 'dead'
      if (decision === 'complete') return complete()
      if (end.status === 404 || end.status === 405)
        observer({ type: 'no_handler', status: end.status, ...ref })
      const code = failure.failed ? 'handler_failed' : `status_${end.status}`
      const state = await failed(code, decision === 'dead')
      // A 2xx would end the sender's retries although the work is not done.
      if (end.status >= 400 || state === 'completed') return { state }
      return decision === 'dead'
        ? { state, replace: runProblemAnswer(422, 'handler_rejected', state) }
        : { state, replace: runProblemAnswer(503, 'handler_failed', state) }
    }

    claim.onTimeout(() => {
      settlement ??= settleOnce('timeout')
      settlement.then((settled) => {
        for (const callback of timeoutCallbacks) callback(settled)
      })
    })

    return {
      status: 'claimed',
      // What the payload holds is the caller's word: the type parameter says it, nothing checks it.
      webhook: shown as ClaimedDelivery<Payload>,
      settle(end) {
        settlement ??= settleOnce(end)
        return settlement
      },
      onTimeout: (callback) => void timeoutCallbacks.push(callback),
      reportUnheld: () => observer({ type: 'response_unheld', ...ref }),
    }
  }

  async function runHandler(
    run: Handler<Context, Payload>,
    receipt: ClaimedReceipt<Payload>,
    context: Context,
  ): Promise<Receipt<Payload>> {
    const deliveryId = receipt.webhook.id
    const expired = new Promise<Settlement>((resolve) => receipt.onTimeout(resolve))
    const ran = (async () => {
      let thrown: { readonly error: unknown } | undefined
      try {
        await run(receipt.webhook, context)
      } catch (error) {
        thrown = { error }
        settings.onError(error)
      }
      if (thrown === undefined)
        return {
          settlement: await receipt.settle({ status: 200 }),
          own: completedAnswer(deliveryId),
        }
      const permanent = isPermanentError(thrown.error)
      const settlement = await receipt.settle({
        status: permanent ? 422 : 500,
        error: thrown.error,
      })
      // completeIn() had committed before the handler threw: the work is done.
      if (settlement.state === 'completed') return { settlement, own: completedAnswer(deliveryId) }
      const own = permanent
        ? runProblemAnswer(422, 'handler_rejected', settlement.state)
        : runProblemAnswer(500, 'handler_failed', settlement.state)
      return { settlement, own }
    })()
    const { settlement, own } = await Promise.race([
      ran,
      expired.then((late) => ({
        settlement: late,
        own: runProblemAnswer(503, 'run_timeout', late.state),
      })),
    ])
    return { status: settlement.state, deliveryId, answer: settlement.replace ?? own }
  }

  return Object.freeze({ provider, inbox, handler, receive })
}

interface Verified {
  readonly receivedAt: Date
  readonly headers: HeaderMap
  readonly rawBody: Uint8Array
  readonly parsed: ParsedRequest
  /** The secret that matched. */
  readonly key: HmacKey
  readonly secretIndex: number
}

/** What the handler said through `webhook.fail()`. */
interface Failure {
  failed: boolean
  retryable: boolean
}

interface RunningDelivery extends ClaimedDelivery {
  readonly failure: Failure
}

function idempotencyKeyOf(seed: string, purpose: string | undefined): string {
  if (purpose === undefined) return `whi_${seed}`
  if (!/^[A-Za-z0-9_.:-]{1,128}$/.test(purpose)) {
    throw optionError(
      'idempotencyKey(purpose): use 1 to 128 characters of A-Z, a-z, 0-9, "_", ".", ":" and "-".',
    )
  }
  return `whi_${seed}_${purpose}`
}

function readOptions<Context, Payload>(options: ReceiverOptions<Context, Payload>) {
  if (typeof options !== 'object' || options === null) {
    throw optionError('createReceiver: pass an object: { provider, secret, store }.')
  }
  const provider = providerOf(options.provider)
  const where = `${provider.name} webhook`
  rejectUnknownOptions(where, options, receiverOptionNames)
  const lookUpSecret = secretLookup(where, provider, options.secret)
  const inbox = inboxOf(where, options)
  const { events, endpoint, onError } = options
  if (endpoint !== undefined && (typeof endpoint !== 'string' || endpoint.length > 255)) {
    throw optionError(`${where}: "endpoint" must be a string of at most 255 characters.`)
  }
  if (
    events !== undefined &&
    (!Array.isArray(events) ||
      events.length === 0 ||
      events.some((event) => typeof event !== 'string' || event === ''))
  ) {
    throw optionError(
      `${where}: "events" must be a list of event names, for instance ['push', 'pull_request.opened']; leave it out for all.`,
    )
  }
  if (
    options.inFlight !== undefined &&
    options.inFlight !== 'accept' &&
    options.inFlight !== 'retry'
  ) {
    throw optionError(`${where}: "inFlight" must be 'accept' (202) or 'retry' (503).`)
  }
  functionOption(where, 'handler', options.handler)
  functionOption(where, 'settleBy', options.settleBy)
  functionOption(where, 'onError', onError)
  const completedMs = options.retention?.completedMs
  return Object.freeze({
    provider,
    lookUpSecret,
    inbox,
    endpoint,
    events: events === undefined ? undefined : new Set(events),
    handler: options.handler,
    maxBodyBytes: retentionOption(
      where,
      'maxBodyBytes',
      options.maxBodyBytes,
      provider.maxBodyBytes,
    ),
    inFlight: options.inFlight ?? (provider.retriesByItself ? 'retry' : 'accept'),
    settleBy: options.settleBy,
    redeliverDead: booleanOption(where, 'redeliverDead', options.redeliverDead),
    replayGuard: booleanOption(where, 'replayGuard', options.replayGuard),
    onError: (error: unknown): void => swallow(() => onError?.(error)),
    retentionIsShort: completedMs !== undefined && completedMs < provider.retentionMs,
  })
}

function inboxOf(where: string, options: ReceiverOptions<never, never>): Inbox {
  const { inbox, store, onError } = options
  if (inbox === undefined) {
    checkStore(where, store)
    const policy = Object.fromEntries(
      policyOptionNames
        .filter((name) => options[name] !== undefined)
        .map((name) => [name, options[name]]),
    )
    return inboxFor(where, { store, ...policy, ...(onError === undefined ? {} : { onError }) })
  }
  if (store !== undefined) throw optionError(`${where}: pass "store" or "inbox", not both.`)
  if (typeof inbox !== 'object' || inbox === null || typeof inbox.open !== 'function') {
    throw optionError(`${where}: "inbox" must be what createInbox({ store }) returns.`)
  }
  const misplaced = policyOptionNames.filter((name) => options[name] !== undefined)
  if (misplaced.length > 0) {
    throw optionError(
      `${where}: ${misplaced.map((name) => `"${name}"`).join(', ')} belongs to the shared inbox: set it in createInbox({ … }).`,
    )
  }
  return inbox
}
