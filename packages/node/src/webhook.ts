/** Webhooks on plain node:http, and on everything that has connect-style middleware. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type AnyWebhook,
  type AnyWebhookOptions,
  type ClaimedDelivery,
  createProviderReceiver,
  type GitHubDelivery,
  isPermanentError,
  optionError,
  type Provider,
  type ProviderDelivery,
  type ProviderName,
  pathMatcher,
  providerOf,
  refusalAnswer,
  rejectUnknownOptions,
  type StripeOptions,
  stripeEntry,
  type WebhookOf,
  type WebhookOptions,
} from '@webhook-inbox/core'
import { github, slack, standardWebhooks } from '@webhook-inbox/core/providers'
import { writeAnswer } from './answer.ts'
import type { HeldResponse } from './hold.ts'
import { heldResponseLimit, type NodeOnlyOptions, nodeOptionNames, receiveNode } from './receive.ts'

/** A handler's context on node:http. */
export interface NodeContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
}

export type NodeWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> = WebhookOptions<
  NodeContext,
  Webhook
> &
  NodeOnlyOptions

/** {@link NodeWebhookOptions} for any provider. */
export type NodeAnyWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> = AnyWebhookOptions<
  NodeContext,
  Webhook
> &
  NodeOnlyOptions

/**
 * Answers a request, or calls `next` with `req.webhook` set and the response held: the answer given after `next`
 * settles the delivery. What `next` throws or rejects with counts as the handler's error.
 */
export type NodeListener = (
  req: IncomingMessage,
  res: ServerResponse,
  next?: (error?: unknown) => unknown,
) => void

/**
 * A listener, or connect-style middleware, for GitHub webhooks.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function githubWebhook(options: NodeWebhookOptions<GitHubDelivery>): NodeListener {
  return providerWebhook({ ...options, provider: github })
}

/**
 * {@link githubWebhook} for Stripe's events; the type parameter is their type, for instance `Stripe.Event`.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function stripeWebhook<Payload = unknown>(
  options: NodeWebhookOptions<ProviderDelivery<'stripe', Payload>> & StripeOptions,
): NodeListener {
  const { dedupBy, ...rest } = options
  return providerWebhook({ ...rest, provider: stripeEntry({ dedupBy }) })
}

/**
 * {@link githubWebhook} for Slack's events, interactions and slash commands.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function slackWebhook<Payload = unknown>(
  options: NodeWebhookOptions<ProviderDelivery<'slack', Payload>>,
): NodeListener {
  return providerWebhook({ ...options, provider: slack })
}

/**
 * {@link githubWebhook} for any sender that follows Standard Webhooks.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function standardWebhook<Payload = unknown>(
  options: NodeWebhookOptions<ProviderDelivery<'standard-webhooks', Payload>>,
): NodeListener {
  return providerWebhook({ ...options, provider: standardWebhooks })
}

/**
 * A listener, or connect-style middleware, for any provider of the catalogue or for an entry of yours.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function webhook<
  Name extends ProviderName | Provider,
  Webhook extends ClaimedDelivery = WebhookOf<Name>,
>(options: NodeAnyWebhookOptions<Webhook> & { readonly provider: Name }): NodeListener {
  return providerWebhook({ ...options, provider: providerOf(options.provider) })
}

/**
 * {@link webhook} for an entry: a bundle of it holds no other provider.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function providerWebhook<Webhook extends ClaimedDelivery = ClaimedDelivery>(
  options: NodeAnyWebhookOptions<Webhook> & { readonly provider: Provider },
): NodeListener {
  const { path, maxHeldResponseBytes, ...receiverOptions } = { ...options }
  rejectUnknownOptions('webhook', { ...options }, nodeOptionNames)
  const isOurs = pathMatcher(path)
  const limit = heldResponseLimit(maxHeldResponseBytes)
  const receiver = createProviderReceiver(receiverOptions)

  return (req, res, next) => {
    if (next === undefined && options.handler === undefined && options.queue !== true) {
      throw optionError(
        'webhook: there is nobody to run the delivery. Pass handler: async (webhook) => { … }, or queue: true for a worker, or call the middleware with a third argument: guard(req, res, () => { … }).',
      )
    }
    if (!isOurs(pathOf(req))) {
      if (next === undefined) writeAnswer(req, res, refusalAnswer('not_found'))
      else next()
      return
    }
    receiveNode(req, res, receiver, { context: { req, res }, maxHeldResponseBytes: limit }).then(
      (claim) => {
        if (claim !== undefined && next !== undefined) runNext(res, next, claim)
      },
      (error: unknown) => {
        if (next === undefined) res.destroy(error instanceof Error ? error : undefined)
        else next(error)
      },
    )
  }
}

// A request line may name the whole URL, as proxies write it.
function pathOf({ url = '/' }: IncomingMessage): string {
  return url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '')
}

// An error that reaches us here has found no framework that answers it.
async function runNext(
  res: ServerResponse,
  next: () => unknown,
  held: HeldResponse,
): Promise<void> {
  try {
    await next()
  } catch (error) {
    held.noteError(error)
    if (res.headersSent) {
      res.destroy()
      return
    }
    res.statusCode = statusOf(error)
    res.end()
  }
}

function statusOf(error: unknown): number {
  if (isPermanentError(error)) return 422
  const status = typeof error === 'object' && error !== null ? Reflect.get(error, 'status') : 0
  return Number.isInteger(status) && status >= 400 && status < 600 ? status : 500
}
