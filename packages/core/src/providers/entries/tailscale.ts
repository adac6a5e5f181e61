import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Tailscale: a list of events in each request. */
export const tailscale: Provider = /* @__PURE__ */ entry(() => ({
  name: 'tailscale',
  title: 'Tailscale',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'tailscale-webhook-signature',
    prefix: 'v1=',
    encoding: 'hex',
    content: '{timestamp}.{body}',
    separator: ',',
    timestamp: {
      header: 'tailscale-webhook-signature',
      separator: ',',
      prefix: 't=',
      unit: 's',
      pastMs: 300 * second,
    },
  },
  deliveryId: { digest: 'body' },
  event: { value: 'batch' },
  items: { list: '', id: { digest: 'body' }, event: { body: 'type' } },
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
