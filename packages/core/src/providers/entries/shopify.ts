import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Shopify, by both header families. */
export const shopify: Provider = /* @__PURE__ */ entry(() => ({
  name: 'shopify',
  title: 'Shopify',
  signature: [
    {
      scheme: 'hmac',
      hash: 'SHA-256',
      header: 'x-shopify-hmac-sha256',
      encoding: 'base64',
      content: '{body}',
    },
    {
      scheme: 'hmac',
      hash: 'SHA-256',
      header: 'shopify-hmac-sha256',
      encoding: 'base64',
      content: '{body}',
    },
  ],
  deliveryId: {
    anyOf: [
      { header: 'x-shopify-webhook-id' },
      { header: 'shopify-webhook-id' },
      { header: 'shopify-event-id' },
      { header: 'x-shopify-event-id' },
      { digest: 'body' },
    ],
  },
  event: {
    anyOf: [
      { header: 'x-shopify-topic' },
      { join: [{ header: 'shopify-topic' }, { header: 'shopify-action' }], separator: '/' },
      { header: 'shopify-topic' },
    ],
  },
  ackDeadlineMs: 5 * second,
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: "the app's client secret",
  sources: [
    {
      url: 'npm:@shopify/shopify-api@13.1.0 dist/esm/lib/webhooks/validate.mjs',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://shopify.dev/docs/apps/build/webhooks/subscribe/https',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries'],
    },
  ],
}))
