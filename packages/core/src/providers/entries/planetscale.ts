import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** PlanetScale */
export const planetscale: Provider = /* @__PURE__ */ entry(() => ({
  name: 'planetscale',
  title: 'PlanetScale',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-planetscale-signature',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { body: 'event' },
  pingEvents: ['webhook.test'],
  retriesByItself: true,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'event'],
    },
  ],
  unconfirmed: ['deliveryId: none', 'retries'],
}))
