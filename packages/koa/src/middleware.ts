/** Webhooks on Koa 2 and 3: verifies and claims before the next middleware, settles by the final status. */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import {
  type AnyWebhook,
  type AnyWebhookOptions,
  type ClaimedDelivery,
  createProviderReceiver,
  type GitHubDelivery,
  type Provider,
  type ProviderDelivery,
  type ProviderName,
  pathMatcher,
  providerOf,
  rejectUnknownOptions,
  type StripeOptions,
  stripeEntry,
  type WebhookOf,
  type WebhookOptions,
} from '@webhook-inbox/core'
import { github, slack, standardWebhooks } from '@webhook-inbox/core/providers'
import {
  getWebhook as getNodeWebhook,
  heldResponseLimit,
  type NodeClaim,
  type NodeOnlyOptions,
  nodeOptionNames,
  receiveNode,
  setProperty,
} from '@webhook-inbox/node'
import type { Middleware, ParameterizedContext } from 'koa'

/** What the middleware puts into `ctx.state`. */
export interface WebhookState<Webhook extends ClaimedDelivery = AnyWebhook> {
  /** The delivery that this request has claimed. */
  webhook: Webhook
}

/** Gives `ctx.state.webhook` its type in what is chained to it: `app.use(githubWebhook(…)).use((ctx) => …)`. */
export type WebhookMiddleware<Webhook extends ClaimedDelivery = AnyWebhook> = Middleware<
  WebhookState<Webhook>
>

export type KoaWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> = WebhookOptions<
  ParameterizedContext,
  Webhook
> &
  NodeOnlyOptions

/** {@link KoaWebhookOptions} for any provider. */
export type KoaAnyWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> = AnyWebhookOptions<
  ParameterizedContext,
  Webhook
> &
  NodeOnlyOptions

/**
 * Guards a route, or with `path` an application, for GitHub webhooks: what follows runs once for each delivery, with
 * `ctx.state.webhook`, the payload as `ctx.request.body` and the bytes as `ctx.request.rawBody`.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function githubWebhook(
  options: KoaWebhookOptions<GitHubDelivery>,
): WebhookMiddleware<GitHubDelivery> {
  return providerWebhook({ ...options, provider: github })
}

/**
 * {@link githubWebhook} for Stripe's events; the type parameter is their type, for instance `Stripe.Event`.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function stripeWebhook<Payload = unknown>(
  options: KoaWebhookOptions<ProviderDelivery<'stripe', Payload>> & StripeOptions,
): WebhookMiddleware<ProviderDelivery<'stripe', Payload>> {
  const { dedupBy, ...rest } = options
  return providerWebhook({ ...rest, provider: stripeEntry({ dedupBy }) })
}

/**
 * {@link githubWebhook} for Slack's events, interactions and slash commands.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function slackWebhook<Payload = unknown>(
  options: KoaWebhookOptions<ProviderDelivery<'slack', Payload>>,
): WebhookMiddleware<ProviderDelivery<'slack', Payload>> {
  return providerWebhook({ ...options, provider: slack })
}

/**
 * {@link githubWebhook} for any sender that follows Standard Webhooks.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function standardWebhook<Payload = unknown>(
  options: KoaWebhookOptions<ProviderDelivery<'standard-webhooks', Payload>>,
): WebhookMiddleware<ProviderDelivery<'standard-webhooks', Payload>> {
  return providerWebhook({ ...options, provider: standardWebhooks })
}

/**
 * {@link githubWebhook} for any provider of the catalogue, or for an entry of yours.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function webhook<
  Name extends ProviderName | Provider,
  Webhook extends ClaimedDelivery = WebhookOf<Name>,
>(
  options: KoaAnyWebhookOptions<Webhook> & { readonly provider: Name },
): WebhookMiddleware<Webhook> {
  return providerWebhook({ ...options, provider: providerOf(options.provider) })
}

/**
 * {@link webhook} for an entry: a bundle of it holds no other provider.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function providerWebhook<Webhook extends ClaimedDelivery = ClaimedDelivery>(
  options: KoaAnyWebhookOptions<Webhook> & { readonly provider: Provider },
): WebhookMiddleware<Webhook> {
  const { path, maxHeldResponseBytes, ...receiverOptions } = { ...options }
  rejectUnknownOptions('webhook', { ...options }, nodeOptionNames)
  const isOurs = pathMatcher(path)
  const limit = heldResponseLimit(maxHeldResponseBytes)
  const receiver = createProviderReceiver(receiverOptions)

  return async (ctx, next) => {
    if (!isOurs(ctx.path)) return next()
    handOverBody(ctx)
    const claim = await receiveNode(ctx.req, ctx.res, receiver, {
      context: ctx,
      url: ctx.originalUrl,
      maxHeldResponseBytes: limit,
    })
    if (claim === undefined) {
      // Answered already; Koa would add a 404.
      ctx.respond = false
      return
    }
    const { payload, rawBody } = claim.webhook
    ctx.state.webhook = claim.webhook
    // Other packages give these their own types: they are set without one.
    setProperty(ctx.request, 'body', payload)
    setProperty(ctx.request, 'rawBody', rawBody)
    // A parser would wait for a stream that is empty, where the payload could not be read.
    ctx.disableBodyParser = true
    try {
      await next()
    } catch (error) {
      claim.noteError(error)
      endWhenGone(ctx, 500)
      // Koa answers no error that is nothing, and its sender would wait.
      throw error ?? new TypeError('The handler of a webhook threw nothing.')
    }
    watchBody(ctx, claim)
    endWhenGone(ctx, 404)
  }
}

/**
 * The delivery that this request has claimed, where types do not show it.
 * @throws WebhookInboxError `ERR_NO_WEBHOOK` when no webhook middleware ran before
 */
export function getWebhook<Webhook extends ClaimedDelivery = AnyWebhook>(ctx: {
  readonly req: IncomingMessage
}): Webhook {
  return getNodeWebhook<Webhook>(ctx.req)
}

// Koa's parsers keep what they have read on its own request, where the reader of Node requests does not look.
function handOverBody({ req, request }: ParameterizedContext): void {
  if (req.rawBody !== undefined) return
  const kept: unknown = Reflect.get(request, 'rawBody') ?? Reflect.get(request, 'body')
  if (typeof kept === 'string' || kept instanceof Uint8Array) Reflect.set(req, 'rawBody', kept)
}

// When a stream breaks after its first bytes, Koa 2 and anything piped behind it wait for ever.
function watchBody({ body, res }: ParameterizedContext, claim: NodeClaim): void {
  if (!(body instanceof Readable)) return
  body.once('error', (error) => {
    claim.noteError(error)
    setImmediate(() => {
      if (!res.writableEnded) res.destroy(error)
    })
  })
}

// When the sender is gone Koa 2 ends no response, and neither version answers an error: the status so far is the end.
function endWhenGone(ctx: ParameterizedContext, unsetStatus: number): void {
  const { res } = ctx
  const end = (): void => {
    if (ctx.respond === false || res.headersSent) return
    if (res.statusCode === 404) res.statusCode = unsetStatus
    res.end()
  }
  if (res.closed || res.destroyed) setImmediate(end)
  else res.once('close', end)
}
