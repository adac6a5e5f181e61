/** (Request) → Response: for Workers, Deno, Bun, Next.js and every runtime that speaks the fetch interface. */

import { concatBytes } from './crypto/bytes.ts'
import type { ClaimedDelivery } from './delivery.ts'
import { optionError, rejectUnknownOptions } from './errors.ts'
import type { GitHubDelivery } from './github-delivery.ts'
import { pathMatcher } from './path.ts'
import { type ProviderName, providerOf } from './providers/catalogue.ts'
import { github } from './providers/entries/github.ts'
import { slack } from './providers/entries/slack.ts'
import { standardWebhooks } from './providers/entries/standard-webhooks.ts'
import type { Provider } from './providers/provider.ts'
import { type BodyResult, createProviderReceiver } from './receiver.ts'
import {
  type AnyWebhookOptions,
  type Handler,
  receiverOptionNames,
  type WebhookOptions,
} from './receiver-options.ts'
import type { AnyWebhook, ProviderDelivery, WebhookOf } from './registry.ts'
import { type Answer, refusalAnswer, toResponse } from './response.ts'
import { type StripeOptions, stripeEntry } from './stripe.ts'

/** A handler's context in the fetch adapter. */
export interface FetchContext {
  readonly request: Request
}

type FetchOnlyOptions<Webhook extends ClaimedDelivery> = {
  /** Answer this path only; others get 404. @default every path */
  readonly path?: string
} & (
  | {
      /** Required, for there is no route behind a fetch handler, unless a worker runs the deliveries. */
      readonly handler: Handler<FetchContext, Webhook>
    }
  | { readonly queue: true }
)

export type FetchWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> = WebhookOptions<
  FetchContext,
  Webhook
> &
  FetchOnlyOptions<Webhook>

/** {@link FetchWebhookOptions} for any provider. */
export type FetchAnyWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> =
  AnyWebhookOptions<FetchContext, Webhook> & FetchOnlyOptions<Webhook>

export type FetchHandler = (request: Request) => Promise<Response>

/** A fetch handler for GitHub webhooks. @throws WebhookInboxError `ERR_OPTION` */
export function githubWebhook(options: FetchWebhookOptions<GitHubDelivery>): FetchHandler {
  return providerWebhook({ ...options, provider: github })
}

/** A fetch handler for Stripe's events; the type parameter is their type. @throws WebhookInboxError `ERR_OPTION` */
export function stripeWebhook<Payload = unknown>(
  options: FetchWebhookOptions<ProviderDelivery<'stripe', Payload>> & StripeOptions,
): FetchHandler {
  const { dedupBy, ...rest } = options
  return providerWebhook({ ...rest, provider: stripeEntry({ dedupBy }) })
}

/** A fetch handler for Slack's events, interactions and commands. @throws WebhookInboxError `ERR_OPTION` */
export function slackWebhook<Payload = unknown>(
  options: FetchWebhookOptions<ProviderDelivery<'slack', Payload>>,
): FetchHandler {
  return providerWebhook({ ...options, provider: slack })
}

/** A fetch handler for any sender that follows Standard Webhooks. @throws WebhookInboxError `ERR_OPTION` */
export function standardWebhook<Payload = unknown>(
  options: FetchWebhookOptions<ProviderDelivery<'standard-webhooks', Payload>>,
): FetchHandler {
  return providerWebhook({ ...options, provider: standardWebhooks })
}

/** A fetch handler for any provider of the catalogue, or for an entry of yours. @throws WebhookInboxError `ERR_OPTION` */
export function webhook<
  Name extends ProviderName | Provider,
  Webhook extends ClaimedDelivery = WebhookOf<Name>,
>(options: FetchAnyWebhookOptions<Webhook> & { readonly provider: Name }): FetchHandler {
  return providerWebhook({ ...options, provider: providerOf(options.provider) })
}

/** {@link webhook} for an entry: a bundle of it holds no other provider. @throws WebhookInboxError `ERR_OPTION` */
export function providerWebhook<Webhook extends ClaimedDelivery = ClaimedDelivery>(
  options: FetchAnyWebhookOptions<Webhook> & { readonly provider: Provider },
): FetchHandler {
  const { path, ...receiverOptions } = { ...options }
  rejectUnknownOptions('webhook', { ...options }, [...receiverOptionNames, 'path'])
  if (typeof receiverOptions.handler !== 'function' && receiverOptions.queue !== true) {
    throw optionError(
      'webhook: "handler" is missing. Pass handler: async (webhook) => { … }; it runs once for each delivery. Or queue: true, and a worker.',
    )
  }
  const isOurs = pathMatcher(path)
  const receiver = createProviderReceiver(receiverOptions)
  return async (request) => {
    if (!isOurs(new URL(request.url).pathname)) return respond(request, refusalAnswer('not_found'))
    const receipt = await receiver.receive(
      {
        method: request.method,
        url: request.url,
        headers: request.headers,
        body: (maxBytes) => readRequestBody(request, maxBytes),
      },
      { request },
    )
    if (receipt.status === 'claimed')
      throw new TypeError('A receiver with a handler answers by itself.')
    return respond(request, receipt.answer)
  }
}

// An answer to HEAD has no body; not every runtime takes it away.
function respond({ method }: Request, answer: Answer): Response {
  const response = toResponse(answer)
  return method === 'HEAD' ? new Response(undefined, response) : response
}

/**
 * Reads the bytes of a web-standard request, counting: a length is not always sent, and may lie.
 * Never rejects.
 */
export async function readRequestBody(request: Request, maxBytes: number): Promise<BodyResult> {
  if (request.bodyUsed) return { ok: false, code: 'ERR_BODY_CONSUMED' }
  if (request.body === null) return { ok: true, bytes: new Uint8Array() }
  let reader: ReadableStreamDefaultReader<Uint8Array>
  try {
    reader = request.body.getReader()
  } catch {
    // Locked: somebody else is reading.
    return { ok: false, code: 'ERR_BODY_CONSUMED' }
  }
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return { ok: true, bytes: concatBytes(chunks) }
      length += value.length
      if (length > maxBytes) {
        await reader.cancel()
        return { ok: false, code: 'body_too_large' }
      }
      chunks.push(value)
    }
  } catch {
    return { ok: false, code: 'body_incomplete' }
  }
}
