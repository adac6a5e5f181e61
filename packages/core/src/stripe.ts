import { optionError } from './errors.ts'
import { freeze } from './providers/define.ts'
import { stripe } from './providers/entries/stripe.ts'
import type { Provider } from './providers/provider.ts'

/** What is Stripe's alone. */
export interface StripeOptions {
  /**
   * What makes two deliveries copies of each other. `event`: the event's id. `object`: the id of the object and the
   * type of the event, because Stripe may make two events of one change; then a second `invoice.updated` of one
   * invoice is a copy as well, so it fits events that happen to an object once. @default 'event'
   */
  readonly dedupBy?: 'event' | 'object'
}

const stripeByObject: Provider = /* @__PURE__ */ freeze({
  ...stripe,
  deliveryId: { join: [{ body: 'data.object.id' }, { body: 'type' }] },
})

/**
 * The entry of the options.
 * @throws WebhookInboxError `ERR_OPTION` when `dedupBy` is neither
 */
export function stripeEntry({
  dedupBy = 'event',
}: {
  readonly dedupBy: StripeOptions['dedupBy'] | undefined
}): Provider {
  if (dedupBy === 'event') return stripe
  if (dedupBy === 'object') return stripeByObject
  throw optionError(
    `stripe webhook: "dedupBy" must be 'event' (the event's id) or 'object' (the object's id and the type).`,
  )
}
