/** Webhooks on Express 4 and 5: verifies and claims before the route handler, settles by its final status. */
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
  heldResponseLimit,
  type NodeOnlyOptions,
  nodeOptionNames,
  receiveNode,
  setProperty,
} from '@webhook-inbox/node'
import type { Request, RequestHandler, Response } from 'express'

declare global {
  namespace Express {
    interface Request {
      /** The delivery that this request has claimed. Absent on routes without the webhook middleware. */
      webhook?: AnyWebhook
      /** The bytes of the body as they came. */
      rawBody?: Uint8Array
    }
  }
}

/** A handler's context on Express. */
export interface ExpressContext {
  readonly req: Request
  readonly res: Response
}

export type ExpressWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> = WebhookOptions<
  ExpressContext,
  Webhook
> &
  NodeOnlyOptions

/** {@link ExpressWebhookOptions} for any provider. */
export type ExpressAnyWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> =
  AnyWebhookOptions<ExpressContext, Webhook> & NodeOnlyOptions

/**
 * Guards a route, or with `path` an application, for GitHub webhooks: the handlers after it run once for each
 * delivery, with `req.webhook`, the payload as `req.body` and the bytes as `req.rawBody`.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function githubWebhook(options: ExpressWebhookOptions<GitHubDelivery>): RequestHandler {
  return providerWebhook({ ...options, provider: github })
}

/**
 * {@link githubWebhook} for Stripe's events; the type parameter is their type, for instance `Stripe.Event`.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function stripeWebhook<Payload = unknown>(
  options: ExpressWebhookOptions<ProviderDelivery<'stripe', Payload>> & StripeOptions,
): RequestHandler {
  const { dedupBy, ...rest } = options
  return providerWebhook({ ...rest, provider: stripeEntry({ dedupBy }) })
}

/**
 * {@link githubWebhook} for Slack's events, interactions and slash commands.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function slackWebhook<Payload = unknown>(
  options: ExpressWebhookOptions<ProviderDelivery<'slack', Payload>>,
): RequestHandler {
  return providerWebhook({ ...options, provider: slack })
}

/**
 * {@link githubWebhook} for any sender that follows Standard Webhooks.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function standardWebhook<Payload = unknown>(
  options: ExpressWebhookOptions<ProviderDelivery<'standard-webhooks', Payload>>,
): RequestHandler {
  return providerWebhook({ ...options, provider: standardWebhooks })
}

/**
 * {@link githubWebhook} for any provider of the catalogue, or for an entry of yours.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function webhook<
  Name extends ProviderName | Provider,
  Webhook extends ClaimedDelivery = WebhookOf<Name>,
>(options: ExpressAnyWebhookOptions<Webhook> & { readonly provider: Name }): RequestHandler {
  return providerWebhook({ ...options, provider: providerOf(options.provider) })
}

/**
 * {@link webhook} for an entry: a bundle of it holds no other provider.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function providerWebhook<Webhook extends ClaimedDelivery = ClaimedDelivery>(
  options: ExpressAnyWebhookOptions<Webhook> & { readonly provider: Provider },
): RequestHandler {
  const { path, maxHeldResponseBytes, ...receiverOptions } = { ...options }
  rejectUnknownOptions('webhook', { ...options }, nodeOptionNames)
  const isOurs = pathMatcher(path)
  const limit = heldResponseLimit(maxHeldResponseBytes)
  const receiver = createProviderReceiver(receiverOptions)

  return (req, res, next) => {
    if (!isOurs(req.path)) {
      next()
      return
    }
    receiveNode(req, res, receiver, { context: { req, res }, maxHeldResponseBytes: limit }).then(
      (claim) => {
        if (claim === undefined) return
        setProperty(req, 'body', claim.webhook.payload)
        // Express 4's parsers look at this mark, those of Express 5 at the stream.
        setProperty(req, '_body', true)
        next()
      },
      next,
    )
  }
}
