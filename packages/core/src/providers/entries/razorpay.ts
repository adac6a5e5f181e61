import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Razorpay */
export const razorpay: Provider = /* @__PURE__ */ entry(() => ({
  name: 'razorpay',
  title: 'Razorpay',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-razorpay-signature',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { header: 'x-razorpay-event-id' },
  event: { body: 'event' },
  retriesByItself: true,
  // Events can be asked for again for fifteen days.
  retentionMs: 16 * day,
  secretIs: 'the secret of the webhook',
  sources: [
    {
      url: 'npm:razorpay@2.9.8 dist/utils/razorpay-utils.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://razorpay.com/docs/webhooks/validate-test/',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event'],
    },
    {
      url: 'https://razorpay.com/docs/webhooks/best-practices',
      asOf: '2026-12-01',
      facts: ['retries'],
    },
    {
      url: 'https://razorpay.com/docs/webhooks/faqs/',
      asOf: '2026-12-01',
      facts: ['redelivery'],
    },
  ],
  unconfirmed: ['ackDeadline: 5 s'],
}))
