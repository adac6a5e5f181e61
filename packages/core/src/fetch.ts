/** (Request) → Response: for Workers, Deno, Bun, Next.js and every runtime that speaks the fetch interface. */
import type { ClaimedDelivery } from './delivery.ts'
import { optionError, rejectUnknownOptions } from './errors.ts'
import type { GitHubDelivery } from './github-delivery.ts'
import { pathMatcher } from './path.ts'
import type { ProviderName } from './providers/catalogue.ts'
import type { Provider } from './providers/provider.ts'
import { type BodyResult, createReceiver } from './receiver.ts'
import { type Handler, receiverOptionNames, type WebhookOptions } from './receiver-options.ts'
import type { AnyWebhook, WebhookOf } from './registry.ts'
import { type Answer, refusalAnswer, toResponse } from './response.ts'

/** A handler's context in the fetch adapter. */
export interface FetchContext {
  readonly request: Request
}

export type FetchWebhookOptions<Webhook extends ClaimedDelivery = AnyWebhook> = WebhookOptions<
  FetchContext,
  Webhook
> & {
  /** Answer this path only; others get 404. @default every path */
  readonly path?: string
} & (
    | {
        /** Required, for there is no route behind a fetch handler, unless a worker runs the deliveries. */
        readonly handler: Handler<FetchContext, Webhook>
      }
    | { readonly queue: true }
  )

export type FetchHandler = (request: Request) => Promise<Response>

/** A fetch handler for GitHub webhooks. @throws WebhookInboxError `ERR_OPTION` */
export function githubWebhook(options: FetchWebhookOptions<GitHubDelivery>): FetchHandler {
  return webhook({ ...options, provider: 'github' })
}

/** A fetch handler for any provider of the catalogue, or for an entry of yours. @throws WebhookInboxError `ERR_OPTION` */
export function webhook<
  Name extends ProviderName | Provider,
  Webhook extends ClaimedDelivery = WebhookOf<Name>,
>(options: FetchWebhookOptions<Webhook> & { readonly provider: Name }): FetchHandler {
  const { path, ...receiverOptions } = { ...options }
  rejectUnknownOptions('webhook', { ...options }, [...receiverOptionNames, 'path'])
  if (typeof receiverOptions.handler !== 'function' && receiverOptions.queue !== true) {
    throw optionError(
      'webhook: "handler" is missing. Pass handler: async (webhook) => { … }; it runs once for each delivery. Or queue: true, and a worker.',
    )
  }
  const isOurs = pathMatcher(path)
  const receiver = createReceiver(receiverOptions)
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
      if (done) return { ok: true, bytes: joinBytes(chunks, length) }
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

function joinBytes(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = chunks
  if (only !== undefined && chunks.length === 1) return only
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}
