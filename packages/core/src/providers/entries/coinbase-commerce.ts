import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Coinbase Commerce */
export const coinbaseCommerce: Provider = /* @__PURE__ */ entry(() => ({
  name: 'coinbase-commerce',
  title: 'Coinbase Commerce',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-cc-webhook-signature',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { body: 'event.id' },
  event: { body: 'event.type' },
  retriesByItself: true,
  retentionMs: 4 * day,
  retryNumber: { body: 'attempt_number' },
  secretIs: 'the shared secret',
  sources: [
    {
      url: 'npm:coinbase-commerce-node@1.0.4 lib/Webhook.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
  ],
  unconfirmed: ['retries: up to 3 days'],
}))
