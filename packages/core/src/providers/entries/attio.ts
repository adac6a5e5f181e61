import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Attio */
export const attio: Provider = /* @__PURE__ */ entry(() => ({
  name: 'attio',
  title: 'Attio',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'attio-signature',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { header: 'idempotency-key' },
  event: { anyOf: [{ body: 'events.0.event_type' }, { value: 'batch' }] },
  retriesByItself: true,
  retentionMs: 4 * day,
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
    {
      url: 'https://docs.attio.com/rest-api/how-to/webhooks',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'retries'],
    },
  ],
  unconfirmed: ['event: events.0.event_type'],
}))
