import { entry } from '../define.ts'
import { verifyPaypal } from '../functions/paypal.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/**
 * PayPal signs no more of the body than its CRC-32, which other bodies have too: fetch what the event names before money
 * moves. The certificate that proves a message is fetched from paypal.com, once; `keys` finds it elsewhere. */
export const paypal: Provider = /* @__PURE__ */ entry(() => ({
  name: 'paypal',
  title: 'PayPal',
  signature: {
    scheme: 'function',
    header: 'paypal-transmission-sig',
    readsTime: true,
    asksKeys: true,
    verify: verifyPaypal,
  },
  deliveryId: { body: 'id' },
  event: { body: 'event_type' },
  retriesByItself: true,
  // Three days of retries; events can be resent by hand.
  retentionMs: 30 * day,
  secretIs: 'the id of the webhook, which is part of what is signed',
  sources: [
    {
      url: 'https://developer.paypal.com/api/rest/webhooks/rest/',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'retries', 'redelivery'],
    },
  ],
}))
