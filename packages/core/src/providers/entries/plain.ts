import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Plain */
export const plain: Provider = /* @__PURE__ */ entry(() => ({
  name: 'plain',
  title: 'Plain',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'plain-request-signature',
    encoding: 'hex',
    content: '{body}',
    timestamp: {
      body: 'webhookMetadata.webhookDeliveryAttemptTimestamp',
      unit: 'iso',
      pastMs: 300 * second,
    },
  },
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  retriesByItself: true,
  retentionMs: 7 * day,
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
  ],
  unconfirmed: ['retries'],
}))
