import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** WorkOS */
export const workos: Provider = /* @__PURE__ */ entry(() => ({
  name: 'workos',
  title: 'WorkOS',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'workos-signature',
    prefix: 'v1=',
    encoding: 'hex',
    content: '{timestamp}.{body}',
    separator: ',',
    timestamp: {
      header: 'workos-signature',
      separator: ',',
      prefix: 't=',
      unit: 'ms',
      pastMs: 180 * second,
    },
  },
  deliveryId: { body: 'id' },
  event: { body: 'event' },
  retriesByItself: true,
  retentionMs: 4 * day,
  secretIs: 'the secret of the endpoint',
  sources: [
    {
      url: 'npm:@workos-inc/node@8.13.0 lib/webhooks/webhooks.js',
      asOf: '2026-12-01',
      facts: ['signature', 'event'],
    },
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['deliveryId'],
    },
    {
      url: 'https://workos.com/docs/events/data-syncing/webhooks/what-you-will-build',
      asOf: '2026-12-01',
      facts: ['retries'],
    },
  ],
}))
