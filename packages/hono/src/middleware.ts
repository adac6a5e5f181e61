import {
  type AnyWebhook,
  type AnyWebhookOptions,
  type ClaimedDelivery,
  type ClaimedReceipt,
  createProviderReceiver,
  type GitHubDelivery,
  optionError,
  type Provider,
  type ProviderDelivery,
  type ProviderName,
  pathMatcher,
  providerOf,
  receiverOptionNames,
  rejectUnknownOptions,
  type StripeOptions,
  statusHeader,
  stripeEntry,
  toResponse,
  WebhookInboxError,
  type WebhookOf,
  type WebhookOptions,
} from '@webhook-inbox/core'
import { github, slack, standardWebhooks } from '@webhook-inbox/core/providers'
import type { Context, ExecutionContext, MiddlewareHandler, Next } from 'hono'
import { readBody } from './body.ts'
import { type HeldResponse, ownResponse, settleResponse } from './held-response.ts'
import { isSentByHand, sentStatus } from './sent-by-hand.ts'

/** What the middleware sets on the context. */
export interface WebhookVariables<Webhook extends ClaimedDelivery = AnyWebhook> {
  /** The verified and claimed delivery. */
  webhook: Webhook
}

/** Gives `c.get('webhook')` its type in the same route and in chained middleware. */
export type WebhookMiddleware<Webhook extends ClaimedDelivery = AnyWebhook> = MiddlewareHandler<{
  Variables: WebhookVariables<Webhook>
}>

interface HonoOnlyOptions {
  /**
   * Answer this path only; other requests go on to the next handler. Compared with the absolute `c.req.path`,
   * without case and one trailing slash. @default every request that reaches the middleware
   */
  readonly path?: string
  /**
   * A response of at most this many bytes leaves whole, after its delivery is settled. Of a larger one only the
   * last chunk waits, and the observer hears `response_unheld`. @default 1048576 (1 MiB)
   */
  readonly maxHeldResponseBytes?: number
}

export type HonoWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> = WebhookOptions<
  Context,
  Webhook
> &
  HonoOnlyOptions

/** {@link HonoWebhookOptions} for any provider. */
export type HonoAnyWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> = AnyWebhookOptions<
  Context,
  Webhook
> &
  HonoOnlyOptions

const optionNames: readonly string[] = [...receiverOptionNames, 'path', 'maxHeldResponseBytes']

/**
 * Guards a Hono route for GitHub webhooks: what stands behind it runs once for each verified delivery, and the
 * status of its answer decides whether the delivery is completed.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function githubWebhook(
  options: HonoWebhookOptions<GitHubDelivery>,
): WebhookMiddleware<GitHubDelivery> {
  return providerWebhook({ ...options, provider: github })
}

/**
 * {@link githubWebhook} for Stripe's events; the type parameter is their type, for instance `Stripe.Event`.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function stripeWebhook<Payload = unknown>(
  options: HonoWebhookOptions<ProviderDelivery<'stripe', Payload>> & StripeOptions,
): WebhookMiddleware<ProviderDelivery<'stripe', Payload>> {
  const { dedupBy, ...rest } = options
  return providerWebhook({ ...rest, provider: stripeEntry({ dedupBy }) })
}

/**
 * {@link githubWebhook} for Slack's events, interactions and slash commands.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function slackWebhook<Payload = unknown>(
  options: HonoWebhookOptions<ProviderDelivery<'slack', Payload>>,
): WebhookMiddleware<ProviderDelivery<'slack', Payload>> {
  return providerWebhook({ ...options, provider: slack })
}

/**
 * {@link githubWebhook} for any sender that follows Standard Webhooks.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function standardWebhook<Payload = unknown>(
  options: HonoWebhookOptions<ProviderDelivery<'standard-webhooks', Payload>>,
): WebhookMiddleware<ProviderDelivery<'standard-webhooks', Payload>> {
  return providerWebhook({ ...options, provider: standardWebhooks })
}

/**
 * Guards a Hono route for any provider of the catalogue, or for an entry of yours.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function webhook<
  Name extends ProviderName | Provider,
  Webhook extends ClaimedDelivery = WebhookOf<Name>,
>(
  options: HonoAnyWebhookOptions<Webhook> & { readonly provider: Name },
): WebhookMiddleware<Webhook> {
  return providerWebhook({ ...options, provider: providerOf(options.provider) })
}

/**
 * {@link webhook} for an entry: a bundle of it holds no other provider.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function providerWebhook<Webhook extends ClaimedDelivery = ClaimedDelivery>(
  options: HonoAnyWebhookOptions<Webhook> & { readonly provider: Provider },
): WebhookMiddleware<Webhook> {
  const { path, maxHeldResponseBytes = 1024 * 1024, ...receiverOptions } = { ...options }
  rejectUnknownOptions('webhook', { ...options }, optionNames)
  if (!Number.isSafeInteger(maxHeldResponseBytes) || maxHeldResponseBytes <= 0) {
    throw optionError(
      'webhook: "maxHeldResponseBytes" must be a positive whole number, for instance 1048576.',
    )
  }
  const isOurs = pathMatcher(path)
  const receiver = createProviderReceiver<Context, Webhook>(receiverOptions)

  return async (c, next) => {
    if (!isOurs(c.req.path)) return next()
    const receipt = await receiver.receive(
      {
        method: c.req.method,
        url: c.req.url,
        headers: c.req.raw.headers,
        body: (maxBytes) => readBody(c.req, maxBytes),
        claimed: c.get('webhook'),
      },
      c,
    )
    if (receipt.status === 'claimed') {
      c.set('webhook', receipt.webhook)
      const held = await runRoute(c, next, receipt, maxHeldResponseBytes)
      if (held === undefined) return
      // Emptied first: setting it twice would mix the headers of both.
      c.res = undefined
      c.res = held.response
      const { pending } = held
      if (pending !== undefined) keepAlive(c, () => pending)
    } else {
      // Through the context, so that headers which earlier middleware has set are kept.
      const answer = toResponse(receipt.answer)
      c.res = c.newResponse(answer.body === null ? null : receipt.answer.body, answer)
    }
    if (mayBeUntold(c.res)) {
      // Without an end: a drain that ends aborts what other requests of this isolate still run.
      keepAlive(c, () => receiver.inbox.drain({ timeoutMs: Number.POSITIVE_INFINITY }))
    }
  }
}

/**
 * The delivery of this request, for handlers whose types do not show it.
 * @throws WebhookInboxError `ERR_NO_WEBHOOK` when no webhook middleware has run before
 */
export function getWebhook<Webhook extends ClaimedDelivery = AnyWebhook>(c: Context): Webhook {
  const found: Webhook | undefined = c.get('webhook')
  if (found !== undefined) return found
  throw new WebhookInboxError(
    'ERR_NO_WEBHOOK',
    'There is no verified webhook on this request. Mount githubWebhook({ … }) on this route, before this handler.',
  )
}

/** Runs what stands behind the middleware, and settles by its answer. Undefined: the answer stays what it is. */
async function runRoute(
  c: Context,
  next: Next,
  receipt: ClaimedReceipt,
  maxHeldBytes: number,
): Promise<HeldResponse | undefined> {
  let expired = false
  const expiry = new Promise<HeldResponse>((resolve) => {
    receipt.onTimeout((settlement) => {
      expired = true
      resolve({ response: ownResponse(settlement) })
    })
  })
  const run = (async () => {
    try {
      await next()
    } catch (error) {
      const { state, headers = {} } = await receipt.settle({ status: 500, error })
      if (!expired) {
        c.header(statusHeader, state)
        for (const [name, value] of Object.entries(headers)) c.header(name, value)
      }
      throw error
    }
    if (expired) return undefined
    if (c.finalized) {
      if (!isSentByHand(c.res)) return settleResponse(c.res, receipt, maxHeldBytes, c.error)
      receipt.reportUnheld()
      await receipt.settle({ status: await sentStatus(c, c.res), error: c.error })
      return undefined
    }
    // No handler has answered: Hono says 500, whatever a look at c.res would show.
    const { state } = await receipt.settle({ status: 500 })
    c.header(statusHeader, state)
    return undefined
  })()
  run.catch(() => {}) // after the expiry nobody waits for it
  return Promise.race([run, expiry])
}

/** Whether the store may still have to be told what became of the delivery, because it did not answer in time. */
function mayBeUntold({ status, headers }: Response): boolean {
  const state = headers.get(statusHeader)
  return state === 'refused' ? status === 503 : state !== 'completed'
}

// Elsewhere the process lives on; a Worker stops when it has answered, unless it says what it still does.
function keepAlive(c: Context, work: () => Promise<unknown>): void {
  let context: ExecutionContext
  try {
    context = c.executionCtx
  } catch {
    return // Hono throws where there is none
  }
  context.waitUntil(work())
}
