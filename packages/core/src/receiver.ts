/** request → verify → parse → claim → receipt. Knows no framework, no SQL and no retry policy. */
import { backend } from '#crypto'
import type { Claim } from './claim.ts'
import { toHex, utf8 } from './crypto/bytes.ts'
import { timedOut, withDeadline } from './deadline.ts'
import type { ClaimedDelivery, Delivery, DeliveryKey, HeaderMap } from './delivery.ts'
import { optionError, WebhookInboxError } from './errors.ts'
import { type HeadersInput, toHeaderMap } from './headers.ts'
import type { Inbox, QueuedWork } from './inbox.ts'
import { openItems } from './items.ts'
import type { DeliveryRef } from './observer.ts'
import { bytesOption } from './options.ts'
import { providerOf } from './providers/catalogue.ts'
import { decodeBody } from './providers/decode.ts'
import { type Readable, readField } from './providers/fields.ts'
import {
  answerHandshake,
  type HandshakeMessage,
  type HandshakeResult,
  handshakeMethods,
  hasUnsignedPost,
} from './providers/handshake.ts'
import { interpret } from './providers/interpret.ts'
import { headersToStore, type ParsedItem, type ParsedRequest } from './providers/parse.ts'
import type { BodyKind, FieldSource, Provider } from './providers/provider.ts'
import { hasSignature } from './providers/signature.ts'
import {
  type Handler,
  type ProviderReceiverOptions,
  type ReceiverOptions,
  readReceiverOptions,
} from './receiver-options.ts'
import {
  type Answer,
  copiesAnswer,
  copyAnswer,
  doneAnswer,
  handshakeAnswer,
  ignoredAnswer,
  type RefusalCode,
  refusalAnswer,
  stopHeaders,
  successAs,
  withHeaders,
} from './response.ts'
import {
  type ClaimedReceipt,
  createInnerRun,
  createRun,
  idempotencySeed,
  isClaimedDelivery,
  type RunAnswers,
  type RunInput,
  runHandler,
} from './run.ts'
import type { SecretKeys } from './secret.ts'
import type { StoredPayload } from './store.ts'
import { withNotes } from './stored-headers.ts'

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
        | 'handshake'
      /** Empty for a handshake. */
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
  if (typeof options !== 'object' || options === null)
    throw optionError('createReceiver: pass an object: { provider, secret, store }.')
  return createProviderReceiver({ ...options, provider: providerOf(options.provider) })
}

/**
 * {@link createReceiver} for an entry: a bundle of it holds no other provider.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function createProviderReceiver<
  Context = unknown,
  Webhook extends ClaimedDelivery = ClaimedDelivery,
>(options: ProviderReceiverOptions<Context, Webhook>): Receiver<Context, Webhook> {
  const settings = readReceiverOptions(options)
  const { handler } = options
  const { provider, inbox, lookUpSecret, verifyToken, keys, toleranceMs } = settings
  const methods = handshakeMethods(provider)
  const refusing = { stopStatuses: provider.stopStatuses, methods }
  const mayBeUnsigned = hasUnsignedPost(provider)
  const { observer } = inbox
  if (settings.retentionIsShort)
    observer({ type: 'warning', code: 'retention_short', provider: provider.name })

  function refuse(code: RefusalCode): Receipt<Webhook> {
    const answer = refusalAnswer(code, refusing)
    observer({ type: 'refused', provider: provider.name, code, status: answer.status })
    return { status: 'refused', code, answer }
  }

  /** An answer of ours in place of a run. */
  function answered(
    status: Exclude<Receipt['status'], 'claimed' | 'refused'>,
    { parsed: { deliveryId, payload }, headers, url }: Verified,
    answer: Answer,
  ): Receipt<Webhook> {
    const stop = status === 'dead' ? stopHeaders(provider) : undefined
    const own = successAs(provider, answer, { headers, url, payload })
    return { status, deliveryId, answer: withHeaders(own, stop) }
  }

  async function handshaken(
    result: HandshakeResult,
    message: Omit<HandshakeMessage, 'name' | 'provider'>,
  ): Promise<Receipt<Webhook>> {
    if (result.status === 'refused') return refuse('handshake_refused')
    const { answer } = result
    const { onHandshake } = settings
    if (onHandshake !== undefined) {
      const heard = { provider: provider.name, name: answer.name, ...message }
      const told = await withDeadline(async () => onHandshake(heard), settings.ackDeadlineMs)
      if (!told.ok) {
        settings.onError(told.error === timedOut ? handshakeTimedOut() : told.error)
        return refuse('handshake_failed')
      }
    }
    observer({ type: 'handshake', provider: provider.name, name: answer.name })
    return { status: 'handshake', deliveryId: '', answer: handshakeAnswer(answer) }
  }

  async function receive(request: ReceiverRequest, context: Context): Promise<Receipt<Webhook>> {
    let judged: Verified | Receipt<Webhook>
    try {
      judged = await judge(request)
    } catch (error) {
      // Of whoever called this, with a body that is no bytes.
      if (error instanceof WebhookInboxError) throw error
      // A function of the entry that has a fault, or a text that no function was made for: the next request may be right.
      settings.onError(error)
      return refuse('internal_error')
    }
    return 'parsed' in judged ? admit(judged, context) : judged
  }

  /** What the request says, once it is proved; or its answer. */
  async function judge(request: ReceiverRequest): Promise<Verified | Receipt<Webhook>> {
    const receivedAt = new Date()
    const headers = toHeaderMap(request.headers)
    const url = settings.publicUrl?.(request.url) ?? request.url
    const unsigned = { isSigned: false, verifyToken } as const
    if (methods.includes(request.method)) {
      const readable = { method: request.method, headers, url, payload: undefined }
      const secret = (await lookUp(request, headers))?.[0]?.text
      const result = await answerHandshake(provider, readable, { ...unsigned, secret })
      if (result !== undefined)
        return handshaken(result, { signed: false, headers, url, payload: undefined })
    }
    if (request.method !== 'POST') return refuse('method_not_allowed')
    const encoding = headers['content-encoding']?.trim().toLowerCase()
    if (encoding !== undefined && encoding !== '' && encoding !== 'identity')
      return refuse('content_encoding_unsupported')
    if (Number(headers['content-length'] ?? 0) > settings.maxBodyBytes)
      return refuse('body_too_large')
    const isSigned = hasSignature(provider, headers, url)
    if (!isSigned && !mayBeUnsigned) return refuse('signature_missing')

    const body = await readBody(request.body)
    if (!body.ok) return refuse(body.code)
    const rawBody = bytesOption('receive', 'body', body.bytes)

    if (!isSigned) {
      const { payload } = decodeBody(provider, rawBody)
      const readable = { method: 'POST', headers, url, payload }
      const result = await answerHandshake(provider, readable, { ...unsigned, secret: undefined })
      if (result === undefined) return refuse('signature_missing')
      return handshaken(result, { signed: false, headers, url, payload })
    }

    const secrets = await lookUp(request, headers)
    if (secrets === undefined) return refuse('secret_unavailable')
    const signed = {
      method: request.method,
      url,
      headers,
      body: rawBody,
      nowMs: receivedAt.getTime(),
    }
    const found = await interpret(provider, secrets, signed, { keys, toleranceMs, verifyToken })
    if (found.status === 'refused') return refuse(found.code)
    if (found.status === 'handshake')
      return handshaken(found.result, { signed: true, headers, url, payload: found.payload })
    const { parsed, digest, covered, bodyIs, secretIndex } = found

    const outer = isClaimedDelivery(request.claimed) ? request.claimed : undefined
    const secret = secrets[secretIndex]?.text ?? ''
    const proved = { parsed, digest, covered, bodyIs, secret, secretIndex }
    return { receivedAt, headers, url, rawBody, outer, ...proved }
  }

  // No longer than the sender waits: a look-up that hangs must not keep requests and their bodies for ever.
  async function lookUp(
    { method, url }: ReceiverRequest,
    headers: HeaderMap,
  ): Promise<SecretKeys | undefined> {
    const answer = await withDeadline(
      () => lookUpSecret({ method, url, headers }),
      settings.ackDeadlineMs,
    )
    if (answer.ok) return answer.value
    settings.onError(answer.error === timedOut ? secretTimedOut() : answer.error)
    return undefined
  }

  function handshakeTimedOut(): WebhookInboxError {
    return optionError(
      `${provider.name} webhook: "onHandshake" did not end within ${settings.ackDeadlineMs} ms, the time that the sender waits.`,
    )
  }

  function secretTimedOut(): WebhookInboxError {
    return new WebhookInboxError(
      'ERR_SECRET_UNAVAILABLE',
      `${provider.name} webhook: the "secret" function did not answer within ${settings.ackDeadlineMs} ms, the time that the sender waits.`,
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
    const { parsed, headers, url, digest, outer } = verified
    const { payload, deliveryId } = parsed
    const from: Readable = { headers, url, payload }
    const retryNumber = textOf(provider.retryNumber, from)
    const retryReason = textOf(provider.retryReason, from)
    const key = await keyOf(verified)
    const ref: DeliveryRef = {
      provider: provider.name,
      endpoint: key.endpoint,
      deliveryId: parsed.deliveryId,
      event: parsed.event,
      ...(parsed.action === undefined ? {} : { action: parsed.action }),
    }
    observer({
      type: 'verified',
      secretIndex: verified.secretIndex,
      ...(retryNumber === undefined ? {} : { retryNumber }),
      ...(retryReason === undefined ? {} : { retryReason }),
      ...ref,
    })
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
      // A list without events only tests the connection.
      const isPing = isPingEvent(parsed.event) || parsed.items?.length === 0
      const status = isPing ? 'ping' : 'ignored'
      observer({ type: status, ...ref })
      return answered(status, verified, ignoredAnswer(status, deliveryId))
    }

    if (outer !== undefined && isSameKey(outer.key, key))
      return runWith(createInnerRun(outer), context)
    if (parsed.items !== undefined && !settings.queue)
      return admitItems(verified, parsed.items, key, ref, context)

    const opened = await inbox.open({
      key,
      ref,
      fingerprint: digest,
      minRetentionMs: provider.retentionMs,
      redeliverDead: settings.redeliverDead,
      ...(settings.queue ? { queued: queuedWork(verified, key, ref) } : {}),
    })
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
        return answered(opened.status, verified, copyAnswer(copy, deliveryId))
      }
      case 'waiting': {
        const copy = { state: opened.status, retryInMs: opened.retryInMs } as const
        return answered(opened.status, verified, copyAnswer(copy, deliveryId))
      }
      default:
        return answered(opened.status, verified, copyAnswer({ state: opened.status }, deliveryId))
    }
  }

  async function admitItems(
    verified: Verified,
    items: readonly ParsedItem[],
    key: DeliveryKey,
    ref: DeliveryRef,
    context: Context,
  ): Promise<Receipt<Webhook>> {
    const opened = await openItems({
      inbox,
      batch: { key, ref },
      items: items.filter(isWantedItem),
      minRetentionMs: provider.retentionMs,
      redeliverDead: settings.redeliverDead,
      keep: settings.keepDeadBody
        ? {
            headers: headersToStore(provider, verified.headers),
            event: verified.parsed.event,
          }
        : undefined,
      onError: settings.onError,
    })
    if (opened.status === 'unavailable') return refuse('store_unavailable')
    const { deliveryId } = ref
    if (opened.status === 'copies') {
      const status = opened.busyMs === undefined ? 'completed' : 'processing'
      return answered(status, verified, copiesAnswer(opened.busyMs, deliveryId))
    }
    const { items: claims } = opened
    return start(verified, key, ref, claims.claim, context, claims)
  }

  function isWanted(parsed: ParsedRequest): boolean {
    const { event, action, items } = parsed
    if (items !== undefined) return items.some(isWantedItem)
    if (settings.events === undefined) return !isPingEvent(event)
    return (
      settings.events.has(event) ||
      (action !== undefined && settings.events.has(`${event}.${action}`))
    )
  }

  function isWantedItem({ event }: ParsedItem): boolean {
    return settings.events?.has(event) ?? !isPingEvent(event)
  }

  function isPingEvent(event: string): boolean {
    return provider.pingEvents?.includes(event) === true
  }

  async function keyOf({ parsed, covered, secret }: Verified): Promise<DeliveryKey> {
    if (!settings.replayGuard) {
      const endpoint = settings.endpoint ?? parsed.endpoint ?? ''
      return { provider: provider.name, endpoint, deliveryId: parsed.deliveryId }
    }
    // The scope tells tenants apart that share an endpoint; no header may take part in it.
    // Without a secret the provider's own key has proved the request: there is one scope.
    const own = await backend.importHmacKey('SHA-256', utf8(secret || provider.name))
    const scope = toHex(
      await backend.hmac('SHA-256', own, utf8('webhook-inbox replay guard')),
    ).slice(0, 16)
    return {
      provider: provider.name,
      endpoint: settings.endpoint ?? '',
      deliveryId: `sha256:${covered}:${scope}`,
    }
  }

  async function start(
    verified: Verified,
    key: DeliveryKey,
    ref: DeliveryRef,
    claim: Claim,
    context: Context,
    items?: RunInput['items'],
  ): Promise<Receipt<Webhook>> {
    const receipt = createRun<Webhook>({
      settings,
      delivery: deliveryOf(verified, key),
      key,
      ref,
      claim,
      keySeed: await idempotencySeed(key),
      kept:
        settings.keepDeadBody && items === undefined ? payloadToStore(verified, key) : undefined,
      items,
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
      payload: payloadToStore(verified, key),
      ...(order === undefined ? {} : { order }),
    }
  }

  function payloadToStore(
    { parsed, headers, rawBody, bodyIs }: Verified,
    key: DeliveryKey,
  ): StoredPayload {
    const isOtherId = key.deliveryId !== parsed.deliveryId
    const notes = {
      bodyIs,
      deliveryId: isOtherId ? parsed.deliveryId : undefined,
      events: parsed.items === undefined ? undefined : settings.events,
    }
    return { body: rawBody, headers: withNotes(headersToStore(provider, headers), notes) }
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
    if (handler === undefined) return receipt
    const { headers, payload } = receipt.webhook
    const answers: RunAnswers = {
      onError: settings.onError,
      doneAnswer: (state, deliveryId) =>
        successAs(provider, doneAnswer(state, deliveryId), { headers, url: '', payload }),
    }
    return runHandler(handler, receipt, context, answers)
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

function textOf(source: FieldSource | undefined, from: Readable): string | undefined {
  const text = source === undefined ? undefined : readField(source, from)
  // The observer hears words, not what a stranger may have put there.
  return text !== undefined && /^[\x21-\x7e]{1,64}$/.test(text) ? text : undefined
}

function isSameKey(a: DeliveryKey, b: DeliveryKey): boolean {
  return a.provider === b.provider && a.endpoint === b.endpoint && a.deliveryId === b.deliveryId
}

interface Verified {
  readonly receivedAt: Date
  readonly headers: HeaderMap
  /** The public address, where it is known. */
  readonly url: string
  readonly rawBody: Uint8Array
  readonly parsed: ParsedRequest
  /** Hex SHA-256 of the raw body. */
  readonly digest: string
  /** Hex SHA-256 of what the signature covers. */
  readonly covered: string
  /** What the signature proves the body to be. */
  readonly bodyIs: BodyKind | undefined
  /** The secret that matched. */
  readonly secret: string
  readonly secretIndex: number
  /** What the request has claimed already. */
  readonly outer: ClaimedDelivery | undefined
}
