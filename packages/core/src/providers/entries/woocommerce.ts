import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

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
  deliveryId: { anyOf: [{ header: 'x-wc-webhook-delivery-id' }, { digest: 'body' }] },
  event: { anyOf: [{ header: 'x-wc-webhook-topic' }, { value: 'webhook' }] },
  retriesByItself: true,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'npm:@hookflo/tern@4.1.0 dist/platforms/algorithms.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    { url: 'code:x-wc-webhook-delivery-id', asOf: '2026-12-01', facts: ['deliveryId', 'event'] },
  ],
  unconfirmed: ['retries'],
}))
