import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Orb */
export const orb: Provider = /* @__PURE__ */ entry(() => ({
  name: 'orb',
  title: 'Orb',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-orb-signature',
    prefix: 'v1=',
    encoding: 'hex',
    content: 'v1:{timestamp}:{body}',
    timestamp: { header: 'x-orb-timestamp', unit: 'iso', pastMs: 300 * second },
    separator: ' ',
  },
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  retriesByItself: true,
  retentionMs: 3 * day,
  secretIs: 'the secret of the endpoint',
  sources: [
    {
      url: 'npm:orb-billing@6.11.0 resources/webhooks.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: ['deliveryId: id', 'event: type', 'retries'],
}))
