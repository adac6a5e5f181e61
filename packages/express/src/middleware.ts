/** Webhooks on Express 4 and 5: verifies and claims before the route handler, settles by its final status. */
import {
  type AnyWebhook,
  type ClaimedDelivery,
  createReceiver,
  type GitHubDelivery,
  type Provider,
  type ProviderName,
  pathMatcher,
  rejectUnknownOptions,
  type WebhookOf,
  type WebhookOptions,
} from '@webhook-inbox/core'
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

/**
 * Guards a route, or with `path` an application, for GitHub webhooks: the handlers after it run once for each
 * delivery, with `req.webhook`, the payload as `req.body` and the bytes as `req.rawBody`.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function githubWebhook(options: ExpressWebhookOptions<GitHubDelivery>): RequestHandler {
  return webhook({ ...options, provider: 'github' })
}

/**
 * {@link githubWebhook} for any provider of the catalogue, or for an entry of yours.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function webhook<
  Name extends ProviderName | Provider,
  Webhook extends ClaimedDelivery = WebhookOf<Name>,
>(options: ExpressWebhookOptions<Webhook> & { readonly provider: Name }): RequestHandler {
  const { path, maxHeldResponseBytes, ...receiverOptions } = { ...options }
  rejectUnknownOptions('webhook', { ...options }, nodeOptionNames)
  const isOurs = pathMatcher(path)
  const limit = heldResponseLimit(maxHeldResponseBytes)
  const receiver = createReceiver(receiverOptions)

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
