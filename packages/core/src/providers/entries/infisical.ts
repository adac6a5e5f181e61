import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Infisical */
export const infisical: Provider = /* @__PURE__ */ entry(() => ({
  name: 'infisical',
  title: 'Infisical',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-infisical-signature',
    separator: ';',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { body: 'event' },
  retriesByItself: true,
  retentionMs: day,
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'event'],
    },
  ],
  unconfirmed: ['deliveryId: none', 'retries'],
}))
