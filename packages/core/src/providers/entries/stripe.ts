import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Stripe. The secret is used as it is, `whsec_` and all. `stripeByObject` keys on the object and the type instead. */
export const stripe: Provider = /* @__PURE__ */ entry(() => ({
  name: 'stripe',
  title: 'Stripe',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'stripe-signature',
    prefix: 'v1=',
    encoding: 'hex',
    content: '{timestamp}.{body}',
    separator: ',',
    timestamp: {
      header: 'stripe-signature',
      separator: ',',
      prefix: 't=',
      unit: 's',
      pastMs: 300 * second,
    },
  },
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  retriesByItself: true,
  // Three days of retries; the command line tool resends events of thirty days.
  retentionMs: 30 * day,
  secretIs: 'the signing secret of the endpoint (whsec_…)',
  sources: [
    { url: 'npm:stripe@23.1.0 esm/Webhooks.js', asOf: '2026-12-01', facts: ['signature'] },
    {
      url: 'https://docs.stripe.com/webhooks',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'retries', 'redelivery'],
    },
    {
      url: 'https://docs.stripe.com/webhooks',
      asOf: '2026-12-01',
      facts: ['redelivery'],
    },
  ],
}))
