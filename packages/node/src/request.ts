/** What a request carries once its webhook is verified and claimed. */
import type { IncomingMessage } from 'node:http'
import { type AnyWebhook, type ClaimedDelivery, WebhookInboxError } from '@webhook-inbox/core'

declare module 'node:http' {
  interface IncomingMessage {
    /** The delivery that this request has claimed. Absent on routes without the webhook middleware. */
    webhook?: AnyWebhook
    /** The bytes of the body as they came. */
    rawBody?: Uint8Array
  }
}

/** Sets a property of a request, also where a platform has put one that only reads. */
export function setProperty(target: object, name: string, value: unknown): void {
  const isSet = Reflect.set(target, name, value)
  if (!isSet)
    Reflect.defineProperty(target, name, {
      value,
      configurable: true,
      enumerable: true,
      writable: true,
    })
}

/**
 * The delivery that this request has claimed.
 * @throws WebhookInboxError `ERR_NO_WEBHOOK` when no webhook middleware ran before this handler
 */
export function getWebhook<Webhook extends ClaimedDelivery = AnyWebhook>(
  req: Pick<IncomingMessage, 'webhook'>,
): Webhook {
  // Which provider's it is only the route knows: the type parameter is its word.
  if (req.webhook !== undefined) return req.webhook as ClaimedDelivery as Webhook
  throw new WebhookInboxError(
    'ERR_NO_WEBHOOK',
    'There is no verified webhook on this request. Mount githubWebhook({ secret, store }) on this route, before the handler that reads it.',
  )
}
