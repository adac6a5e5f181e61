/** The options that every adapter shares, and their checks. */
import { withDeadline } from './deadline.ts'
import type { ClaimedDelivery, Delivery } from './delivery.ts'
import { errorHook } from './error-log.ts'
import { optionError, rejectUnknownOptions } from './errors.ts'
import { type Inbox, inboxFor } from './inbox.ts'
import { booleanOption, durationOption, functionOption, sizeOption } from './options.ts'
import type { SettleBy } from './outcome.ts'
import { checkStore, type PolicyOptions, policyOptionNames } from './policy.ts'
import type { ProviderName } from './providers/catalogue.ts'
import { entryOf } from './providers/check.ts'
import { placeholdersOf } from './providers/content.ts'
import type { HandshakeMessage } from './providers/handshake.ts'
import { signaturesOf } from './providers/keys.ts'
import type { KeySource, Provider, Signature } from './providers/provider.ts'
import { type PublicUrl, publicUrlOption } from './public-url.ts'
import { type Secret, type SecretLookup, secretLookup } from './secret.ts'
import type { Store } from './store.ts'

/** Runs for a claimed delivery: returning completes it, throwing fails it. `context` is the adapter's own. */
export type Handler<Context = unknown, Webhook extends ClaimedDelivery = ClaimedDelivery> = (
  webhook: Webhook,
  context: Context,
) => unknown

/** A delivery before it is claimed, with the payload of the claimed one. */
export type DeliveryOf<Webhook extends ClaimedDelivery> = Webhook extends ClaimedDelivery
  ? Pick<Webhook, keyof Delivery>
  : never

/** Where claims are kept: a store with its own policy, or an inbox that brings both. One excludes the other. */
export type StoreOrInbox =
  | ({
      /** Where claims are kept. */
      readonly store: Store
      readonly inbox?: undefined
    } & PolicyOptions)
  | ({
      /** An inbox shared by several endpoints; lease, retry, retention and observer are its own. */
      readonly inbox: Inbox
      readonly store?: undefined
    } & { readonly [Name in keyof PolicyOptions]?: undefined })

/** Options that every adapter shares. */
export type WebhookOptions<
  Context = unknown,
  Webhook extends ClaimedDelivery = ClaimedDelivery,
> = EndpointOptions<Context, Webhook> & StoreOrInbox

/** {@link WebhookOptions} for any provider: of some a public key proves the request, and no secret is needed. */
export type AnyWebhookOptions<
  Context = unknown,
  Webhook extends ClaimedDelivery = ClaimedDelivery,
> = AnyEndpointOptions<Context, Webhook> & StoreOrInbox

/** {@link AnyWebhookOptions} and the provider. */
export type ReceiverOptions<
  Context = unknown,
  Webhook extends ClaimedDelivery = ClaimedDelivery,
> = AnyWebhookOptions<Context, Webhook> & {
  /** A name from the catalogue, or an entry. */
  readonly provider: ProviderName | Provider
}

/** {@link ReceiverOptions} with an entry, not a name: nothing else of the catalogue is needed. */
export type ProviderReceiverOptions<
  Context = unknown,
  Webhook extends ClaimedDelivery = ClaimedDelivery,
> = AnyWebhookOptions<Context, Webhook> & { readonly provider: Provider }

/** What belongs to one endpoint. */
export interface EndpointOptions<
  Context = unknown,
  Webhook extends ClaimedDelivery = ClaimedDelivery,
> extends AnyEndpointOptions<Context, Webhook> {
  readonly secret: Secret
}

/** {@link EndpointOptions} for any provider. */
export interface AnyEndpointOptions<
  Context = unknown,
  Webhook extends ClaimedDelivery = ClaimedDelivery,
> {
  /** Required, except where the sender's own public key proves a request. */
  readonly secret?: Secret
  /**
   * The address that the sender was given, for senders that sign it (Twilio, Square, HubSpot …): behind a proxy no
   * request shows it. An origin, or an address with the path; the query is the request's. Required for those senders.
   */
  readonly publicUrl?: string
  /** How far the time of a signature may be from now, in both directions. @default what the provider says */
  readonly toleranceMs?: number
  /** What the sender repeats when it confirms an address (Meta: `hub.verify_token`). Without it such requests get 403. */
  readonly verifyToken?: string
  /**
   * Hears what a handshake says before it is answered. Asana and Notion send their secret in one, unsigned: keep it, and
   * believe nothing else of it. When this throws, or takes longer than the sender waits, the answer is 503.
   */
  readonly onHandshake?: (handshake: HandshakeMessage) => unknown
  /** Finds the public keys that a sender names (Plaid, AWS SNS …). @default fetched, where the sender publishes them */
  readonly keys?: KeySource
  /** Tells two webhooks of one provider apart; part of the key. @default the provider's own header, or '' */
  readonly endpoint?: string
  /** Only these events run (`push`, `pull_request.opened`); others are answered 202 `ignored`. @default all */
  readonly events?: readonly string[]
  /** Runs the delivery in place of a route handler: its promise decides, not a status. */
  readonly handler?: Handler<Context, Webhook>
  /** @default what the provider sends at most (GitHub: 25 MiB) */
  readonly maxBodyBytes?: number
  /**
   * The answer to a copy while the first run goes on: `accept` 202, `retry` 503 + `Retry-After`. Senders of several
   * events in one request must repeat it, so they are never answered `accept`.
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
  /** What is kept of a delivery that failed for good. Without `keepBody` an inline record holds no bytes. */
  readonly deadLetter?: {
    /** Store the exact bytes with the dead record, so that `inbox.retry` can put it back to work. @default false */
    readonly keepBody?: boolean
  }
  /**
   * Acknowledges first: stores the exact bytes with the claim and answers 202; a worker (`createWorker`) runs it.
   * @default false
   */
  readonly queue?: boolean
  /**
   * With `queue`: the line in which a delivery waits, for instance the id of the thing that it changes. Deliveries of
   * one line run one after another, in the order of receipt, over all endpoints of a store. 1 to 255 characters;
   * undefined for no line. What throws or returns something else is reported, and stored without a line.
   */
  readonly orderKey?: (delivery: DeliveryOf<Webhook>) => string | undefined
  /**
   * Hears what `handler` and the store throw, and nobody else does. Never changes an answer.
   * @default the inbox's; without one the console gets the kind of the error and its place, never its message
   */
  readonly onError?: (error: unknown) => void
}

/** The names of {@link ReceiverOptions}, for checks in adapters. */
export const receiverOptionNames: readonly (keyof ReceiverOptions)[] = [
  'provider',
  'secret',
  'publicUrl',
  'toleranceMs',
  'verifyToken',
  'onHandshake',
  'keys',
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
  'deadLetter',
  'queue',
  'orderKey',
  'onError',
  ...policyOptionNames,
]

/** The checked options: every default filled in. */
export interface ReceiverSettings {
  readonly provider: Provider
  readonly inbox: Inbox
  readonly lookUpSecret: SecretLookup
  readonly publicUrl: PublicUrl | undefined
  readonly toleranceMs: number | undefined
  readonly verifyToken: string | undefined
  readonly onHandshake: ((handshake: HandshakeMessage) => unknown) | undefined
  readonly keys: KeySource | undefined
  readonly ackDeadlineMs: number
  readonly endpoint: string | undefined
  readonly events: ReadonlySet<string> | undefined
  readonly maxBodyBytes: number
  readonly inFlight: 'accept' | 'retry'
  readonly settleBy: SettleBy | undefined
  readonly redeliverDead: boolean
  readonly replayGuard: boolean
  readonly keepDeadBody: boolean
  readonly queue: boolean
  readonly orderKey: ((delivery: Delivery) => unknown) | undefined
  readonly onError: (error: unknown) => void
  readonly retentionIsShort: boolean
}

/** How long a sender waits for an answer, where it does not say. */
const usualAckDeadlineMs = 10_000
const usualMaxBodyBytes = 1024 * 1024

/** Checks the options once. @throws WebhookInboxError `ERR_OPTION` */
export function readReceiverOptions<Context, Webhook extends ClaimedDelivery>(
  options: ProviderReceiverOptions<Context, Webhook>,
): ReceiverSettings {
  if (typeof options !== 'object' || options === null) {
    throw optionError('createReceiver: pass an object: { provider, secret, store }.')
  }
  const provider = entryOf(options.provider)
  const where = `${provider.name} webhook`
  rejectUnknownOptions(where, options, receiverOptionNames)
  const lookUpSecret = secretLookup(where, provider, options.secret, { scoped: true })
  checkKeys(where, provider, options)
  const inbox = inboxOf(where, options)
  const { events, endpoint, onError } = options
  // Half of a surrogate pair is no character: databases replace it, and two endpoints become one.
  if (
    endpoint !== undefined &&
    (typeof endpoint !== 'string' || endpoint.length > 255 || /\p{Surrogate}/u.test(endpoint))
  ) {
    throw optionError(`${where}: "endpoint" must be a string of at most 255 characters.`)
  }
  if (
    events !== undefined &&
    (!Array.isArray(events) ||
      events.length === 0 ||
      // What no header can say would never match, and every delivery would be answered "ignored".
      events.some((event) => typeof event !== 'string' || !/^[\x21-\x7e]+$/.test(event)))
  ) {
    throw optionError(
      `${where}: "events" must be a list of event names without spaces, for instance ['push', 'pull_request.opened']; leave it out for all.`,
    )
  }
  if (
    options.inFlight !== undefined &&
    options.inFlight !== 'accept' &&
    options.inFlight !== 'retry'
  ) {
    throw optionError(`${where}: "inFlight" must be 'accept' (202) or 'retry' (503).`)
  }
  if (options.inFlight === 'accept' && provider.items !== undefined) {
    throw optionError(
      `${where}: inFlight: 'accept' has no meaning for ${provider.name}, which sends several events in one request: it must repeat one of which an event is still in hand. Leave it out.`,
    )
  }
  functionOption(where, 'handler', options.handler)
  functionOption(where, 'settleBy', options.settleBy)
  functionOption(where, 'onError', onError)
  const queue = booleanOption(where, 'queue', options.queue)
  functionOption(where, 'orderKey', options.orderKey)
  checkQueue(where, queue, options)
  const { completedMs } = inbox.policy
  const { deadLetter = {} } = options
  rejectUnknownOptions(`${where}: "deadLetter"`, deadLetter, ['keepBody'])
  return Object.freeze({
    provider,
    lookUpSecret,
    publicUrl: publicUrlOf(where, provider, options.publicUrl),
    toleranceMs: toleranceOf(where, provider, options.toleranceMs),
    verifyToken: verifyTokenOf(where, provider, options.verifyToken),
    onHandshake: onHandshakeOf(where, provider, options.onHandshake),
    keys: withinDeadline(options.keys, provider.ackDeadlineMs ?? usualAckDeadlineMs),
    ackDeadlineMs: provider.ackDeadlineMs ?? usualAckDeadlineMs,
    inbox,
    endpoint,
    events: events === undefined ? undefined : new Set(events),
    maxBodyBytes: sizeOption(
      where,
      'maxBodyBytes',
      options.maxBodyBytes,
      provider.maxBodyBytes ?? usualMaxBodyBytes,
    ),
    inFlight: options.inFlight ?? (provider.retriesByItself ? 'retry' : 'accept'),
    settleBy: options.settleBy,
    redeliverDead: booleanOption(where, 'redeliverDead', options.redeliverDead),
    replayGuard: booleanOption(where, 'replayGuard', options.replayGuard),
    keepDeadBody: booleanOption(where, 'deadLetter.keepBody', deadLetter.keepBody),
    queue,
    // The type parameter says what the payload is; nothing checks it.
    orderKey: options.orderKey as ReceiverSettings['orderKey'],
    onError: onError === undefined ? inbox.policy.onError : errorHook(onError),
    retentionIsShort: completedMs !== undefined && completedMs < provider.retentionMs,
  })
}

function publicUrlOf(where: string, provider: Provider, value: unknown): PublicUrl | undefined {
  const publicUrl = publicUrlOption(where, value)
  if (publicUrl === undefined && signsUrl(provider)) {
    throw optionError(
      `${where}: ${provider.title ?? provider.name} signs the address that it was given, and behind a proxy no request shows it. Pass publicUrl: 'https://hooks.example.com', the origin of that address, or the whole address when the proxy changes its path.`,
    )
  }
  return publicUrl
}

function signsUrl(provider: Provider): boolean {
  return signaturesOf(provider).some((signature) => {
    if (signature.scheme === 'jwt') return signature.urlHash !== undefined
    if (signature.scheme === 'token') return false
    if (signature.signsUrl === true) return true
    // A proxy changes the path too, but not always: the entry says so.
    return (
      'content' in signature &&
      typeof signature.content === 'string' &&
      placeholdersOf(signature.content).includes('url')
    )
  })
}

// No longer than the sender waits: a look-up that hangs must not keep requests and their bodies for ever.
function withinDeadline(keys: KeySource | undefined, deadlineMs: number): KeySource | undefined {
  if (keys === undefined) return undefined
  return async (request) => {
    const answer = await withDeadline(async () => keys(request), deadlineMs)
    if (answer.ok) return answer.value
    throw answer.error
  }
}

// An option that nothing reads would be a safety that is not there.
function checkKeys(
  where: string,
  provider: Provider,
  { keys, secret }: { readonly keys?: unknown; readonly secret?: unknown },
): void {
  functionOption(where, 'keys', keys)
  const signatures = signaturesOf(provider)
  if (keys !== undefined && !signatures.some(asksKeys))
    throw optionError(
      `${where}: "keys" has no meaning for ${provider.name}: its secret is all that is needed.`,
    )
  const isFound = signatures.some(
    (signature) => signature.scheme !== 'jwt' || signature.keysUrl !== undefined,
  )
  if (keys === undefined && secret === undefined && !isFound)
    throw optionError(
      `${where}: nothing says where the public key is. Pass "keys", a function that finds it: keys: ({ kid }) => …; or as "secret" ${provider.secretIs ?? 'the key'}.`,
    )
}

function asksKeys(signature: Signature): boolean {
  if (signature.scheme === 'function') return signature.asksKeys === true
  if (signature.scheme !== 'jwt') return false
  return signature.keyless === true || signature.keysUrl !== undefined
}

function readsTime(signature: Signature): boolean {
  if (signature.scheme === 'token') return false
  if (signature.scheme === 'function') return signature.readsTime === true
  if (signature.scheme !== 'jwt') return signature.timestamp !== undefined
  return signature.maxAgeMs !== undefined || signature.requiredClaims?.includes('iat') === true
}

function toleranceOf(where: string, provider: Provider, value: unknown): number | undefined {
  if (value === undefined) return undefined
  const isTimed = signaturesOf(provider).some(readsTime)
  if (!isTimed)
    throw optionError(
      `${where}: "toleranceMs" has no meaning for ${provider.name}, which signs no time: leave it out.`,
    )
  return durationOption(where, 'toleranceMs', value, 300_000)
}

function onHandshakeOf(
  where: string,
  provider: Provider,
  value: ReceiverSettings['onHandshake'],
): ReceiverSettings['onHandshake'] {
  functionOption(where, 'onHandshake', value)
  if (value !== undefined && provider.handshakes === undefined)
    throw optionError(`${where}: "onHandshake" has no meaning for ${provider.name}: leave it out.`)
  return value
}

function verifyTokenOf(where: string, provider: Provider, value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (provider.handshakes?.some(({ token }) => token !== undefined) !== true)
    throw optionError(`${where}: "verifyToken" has no meaning for ${provider.name}: leave it out.`)
  if (typeof value === 'string' && value.trim() !== '') return value
  throw optionError(
    `${where}: "verifyToken" is blank or no text. Pass the token that you typed into the sender's form, for instance verifyToken: process.env.VERIFY_TOKEN (is it set?).`,
  )
}

function checkQueue(
  where: string,
  queue: boolean,
  options: ProviderReceiverOptions<never, never>,
): void {
  if (!queue) {
    if (options.orderKey === undefined) return
    throw optionError(
      `${where}: "orderKey" needs queue: true: a route that runs its deliveries at once keeps no order.`,
    )
  }
  if (options.handler !== undefined) {
    throw optionError(
      `${where}: with queue: true a worker runs the delivery. Hand the handler to createWorker({ inbox, handler }).`,
    )
  }
  for (const name of ['settleBy', 'inFlight', 'deadLetter'] as const) {
    if (options[name] === undefined) continue
    throw optionError(
      `${where}: "${name}" has no meaning with queue: true: the bytes are stored, and a worker settles.`,
    )
  }
}

function inboxOf(where: string, options: ProviderReceiverOptions<never, never>): Inbox {
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
