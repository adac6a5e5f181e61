/** request → verify → parse → claim → receipt. Knows no framework, no SQL and no retry policy. */
import { backend } from '#crypto'
import type { Claim } from './claim.ts'
import { toHex, utf8 } from './crypto/bytes.ts'
import type { HmacKey } from './crypto/types.ts'
import { timedOut, withDeadline } from './deadline.ts'
import type { ClaimedDelivery, Delivery, DeliveryKey, HeaderMap } from './delivery.ts'
import { optionError, WebhookInboxError } from './errors.ts'
import { type HeadersInput, toHeaderMap } from './headers.ts'
import type { Inbox, QueuedWork } from './inbox.ts'
import type { DeliveryRef } from './observer.ts'
import { bytesOption } from './options.ts'
import {
  headersToStore,
  type ParsedRequest,
  parseRequest,
  signatureOf,
  verifySignature,
} from './providers/interpret.ts'
import type { Provider } from './providers/provider.ts'
import { type Handler, type ReceiverOptions, readReceiverOptions } from './receiver-options.ts'
import {
  type Answer,
  copyAnswer,
  ignoredAnswer,
  type RefusalCode,
  refusalAnswer,
} from './response.ts'
import {
  type ClaimedReceipt,
  createInnerRun,
  createRun,
  idempotencySeed,
  isClaimedDelivery,
  runHandler,
} from './run.ts'

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
  /**
   * What the framework's request carries as its delivery, if anything. When another middleware before this one has
   * claimed the same delivery, its claim is this one's too: asked again, the store would call it a copy.
   */
  readonly claimed?: unknown
}

/** What became of a request. Everything but `claimed` is final and has its answer. */
export type Receipt<Webhook extends ClaimedDelivery = ClaimedDelivery> =
  | ClaimedReceipt<Webhook>
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

export interface Receiver<Context = unknown, Webhook extends ClaimedDelivery = ClaimedDelivery> {
  readonly provider: Provider
  readonly inbox: Inbox
  readonly handler: Handler<Context, Webhook> | undefined
  /** Never rejects for what a sender can cause. With a `handler` the receipt is final. */
  receive(request: ReceiverRequest, context: Context): Promise<Receipt<Webhook>>
}

/**
 * Makes the framework-free receiver that all adapters share.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function createReceiver<
  Context = unknown,
  Webhook extends ClaimedDelivery = ClaimedDelivery,
>(options: ReceiverOptions<Context, Webhook>): Receiver<Context, Webhook> {
  const settings = readReceiverOptions(options)
  const { handler } = options
  const { provider, inbox, lookUpSecret } = settings
  const { observer } = inbox
  if (settings.retentionIsShort)
    observer({ type: 'warning', code: 'retention_short', provider: provider.name })

  function refuse(code: RefusalCode): Receipt<Webhook> {
    const answer = refusalAnswer(code)
    observer({ type: 'refused', provider: provider.name, code, status: answer.status })
    return { status: 'refused', code, answer }
  }

  async function receive(request: ReceiverRequest, context: Context): Promise<Receipt<Webhook>> {
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
    const rawBody = bytesOption('receive', 'body', body.bytes)

    // No longer than the sender waits: a look-up that hangs must not keep requests and their bodies for ever.
    const lookUp = await withDeadline(
      () => lookUpSecret({ method: request.method, url: request.url, headers }),
      provider.ackDeadlineMs,
    )
    if (!lookUp.ok) {
      settings.onError(lookUp.error === timedOut ? secretTimedOut() : lookUp.error)
      return refuse('secret_unavailable')
    }
    const keys = lookUp.value
    const matched = await verifySignature(provider, keys, headers, rawBody)
    if (typeof matched === 'string') return refuse(matched)
    const key = keys[matched]
    const parsed = parseRequest(provider, headers, rawBody)
    if (typeof parsed === 'string') return refuse(parsed)
    if (key === undefined) return refuse('signature_mismatch')

    const outer = isClaimedDelivery(request.claimed) ? request.claimed : undefined
    return admit(
      { receivedAt, headers, rawBody, parsed, key, secretIndex: matched, outer },
      context,
    )
  }

  function secretTimedOut(): WebhookInboxError {
    return new WebhookInboxError(
      'ERR_SECRET_UNAVAILABLE',
      `${provider.name} webhook: the "secret" function did not answer within ${provider.ackDeadlineMs} ms, the time that the sender waits.`,
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
    const bytes = bytesOption('receive', 'body', body)
    return bytes.length > settings.maxBodyBytes
      ? { ok: false, code: 'body_too_large' }
      : { ok: true, bytes }
  }

  // From here on the request is the provider's.
  async function admit(verified: Verified, context: Context): Promise<Receipt<Webhook>> {
    const { parsed, rawBody, outer } = verified
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

    if (outer !== undefined && isSameKey(outer.key, key))
      return runWith(createInnerRun(outer), context)

    const opened = await inbox.open({
      key,
      ref,
      fingerprint: digest,
      minRetentionMs: provider.retentionMs,
      redeliverDead: settings.redeliverDead,
      ...(settings.queue ? { queued: queuedWork(verified, key, ref) } : {}),
    })
    const { deliveryId } = parsed
    switch (opened.status) {
      case 'unavailable':
        return refuse('store_unavailable')
      case 'claimed':
        return start(verified, key, ref, opened.claim, context)
      case 'processing': {
        const copy = {
          state: opened.status,
          leaseMs: opened.leaseMs,
          // A 2xx would complete the claim around this one.
          inFlight: outer === undefined ? (settings.queue ? 'accept' : settings.inFlight) : 'retry',
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

  async function start(
    verified: Verified,
    key: DeliveryKey,
    ref: DeliveryRef,
    claim: Claim,
    context: Context,
  ): Promise<Receipt<Webhook>> {
    const receipt = createRun<Webhook>({
      settings,
      delivery: deliveryOf(verified, key),
      key,
      ref,
      claim,
      keySeed: await idempotencySeed(key),
    })
    return runWith(receipt, context)
  }

  function deliveryOf(verified: Verified, key: DeliveryKey): Delivery {
    const { parsed } = verified
    return {
      provider: provider.name,
      endpoint: key.endpoint,
      id: parsed.deliveryId,
      event: parsed.event,
      action: parsed.action,
      receivedAt: verified.receivedAt,
      headers: verified.headers,
      rawBody: verified.rawBody,
      payload: parsed.payload,
    }
  }

  function queuedWork(verified: Verified, key: DeliveryKey, ref: DeliveryRef): QueuedWork {
    const order = orderOf(verified, key, ref)
    return {
      payload: {
        body: verified.rawBody,
        headers: headersToStore(provider, verified.headers),
      },
      ...(order === undefined ? {} : { order }),
    }
  }

  // What cannot be put in its line is stored without one: late is better than lost.
  function orderOf(verified: Verified, key: DeliveryKey, ref: DeliveryRef): string | undefined {
    try {
      const order: unknown = settings.orderKey?.(deliveryOf(verified, key))
      if (order === undefined || isLine(order)) return order
      throw optionError('"orderKey" must return a string of 1 to 255 characters, or undefined.')
    } catch (error) {
      observer({ type: 'warning', code: 'order_key_failed', ...ref })
      settings.onError(error)
      return undefined
    }
  }

  function runWith(
    receipt: ClaimedReceipt<Webhook>,
    context: Context,
  ): Receipt<Webhook> | Promise<Receipt<Webhook>> {
    return handler === undefined ? receipt : runHandler(handler, receipt, context, settings.onError)
  }

  return Object.freeze({ provider, inbox, handler, receive })
}

// Half of a surrogate pair is no character: databases replace it, and two lines become one.
function isLine(order: unknown): order is string {
  return (
    typeof order === 'string' &&
    order.length > 0 &&
    order.length <= 255 &&
    !/\p{Surrogate}/u.test(order)
  )
}

function isSameKey(a: DeliveryKey, b: DeliveryKey): boolean {
  return a.provider === b.provider && a.endpoint === b.endpoint && a.deliveryId === b.deliveryId
}

interface Verified {
  readonly receivedAt: Date
  readonly headers: HeaderMap
  readonly rawBody: Uint8Array
  readonly parsed: ParsedRequest
  /** The secret that matched. */
  readonly key: HmacKey
  readonly secretIndex: number
  /** What the request has claimed already. */
  readonly outer: ClaimedDelivery | undefined
}
