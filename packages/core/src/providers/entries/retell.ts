import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Retell AI */
export const retell: Provider = /* @__PURE__ */ entry(() => ({
  name: 'retell',
  title: 'Retell AI',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-retell-signature',
    prefix: 'd=',
    encoding: 'hex',
    content: '{body}{timestamp}',
    separator: ',',
    timestamp: {
      header: 'x-retell-signature',
      separator: ',',
      prefix: 'v=',
      unit: 'ms',
      pastMs: 300 * second,
    },
  },
  deliveryId: { digest: 'body' },
  event: { body: 'event' },
  secretIs: 'the API key that is meant for webhooks',
  retriesByItself: true,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    { url: 'npm:retell-sdk@5.66.1 lib/webhook_auth.js', asOf: '2026-12-01', facts: ['signature'] },
  ],
  unconfirmed: ['deliveryId: none', 'event: event', 'retries'],
}))
