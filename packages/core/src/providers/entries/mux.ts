import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Mux */
export const mux: Provider = /* @__PURE__ */ entry(() => ({
  name: 'mux',
  title: 'Mux',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'mux-signature',
    prefix: 'v1=',
    encoding: 'hex',
    content: '{timestamp}.{body}',
    separator: ',',
    timestamp: {
      header: 'mux-signature',
      separator: ',',
      prefix: 't=',
      unit: 's',
      pastMs: 300 * second,
    },
  },
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: 'the signing secret of the webhook',
  sources: [
    {
      url: 'npm:@mux/mux-node@15.3.0 resources/webhooks/webhooks.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['deliveryId'],
    },
  ],
  unconfirmed: ['event: type', 'retries'],
}))
