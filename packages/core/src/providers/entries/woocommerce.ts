import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** WooCommerce */
export const woocommerce: Provider = /* @__PURE__ */ entry(() => ({
  name: 'woocommerce',
  title: 'WooCommerce',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-wc-webhook-signature',
    encoding: 'base64',
    content: '{body}',
  },
  // The header is made of the second in which it was sent.
  deliveryId: {
    anyOf: [
      { join: [{ header: 'x-wc-webhook-delivery-id' }, { digest: 'body' }] },
      { digest: 'body' },
    ],
  },
  event: { anyOf: [{ header: 'x-wc-webhook-topic' }, { value: 'webhook' }] },
  formFields: true,
  handshakes: [
    // Sent without a signature when a webhook is made: answered, and nothing else in it is looked at.
    {
      name: 'ping',
      signed: false,
      when: [{ body: 'webhook_id' }],
      answer: { text: { value: '' } },
    },
  ],
  ackDeadlineMs: 60 * second,
  retriesByItself: false,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'npm:@hookflo/tern@4.1.0 dist/platforms/algorithms.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    { url: 'code:x-wc-webhook-delivery-id', asOf: '2026-12-01', facts: ['deliveryId', 'event'] },
    {
      url: 'https://github.com/woocommerce/woocommerce/blob/trunk/plugins/woocommerce/includes/class-wc-webhook.php',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'handshakes', 'ackDeadline', 'retries'],
    },
  ],
}))
