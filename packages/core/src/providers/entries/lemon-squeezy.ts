import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Lemon Squeezy */
export const lemonSqueezy: Provider = /* @__PURE__ */ entry(() => ({
  name: 'lemon-squeezy',
  title: 'Lemon Squeezy',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-signature',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { anyOf: [{ header: 'x-event-name' }, { body: 'meta.event_name' }] },
  success: { status: 200 },
  retriesByItself: true,
  retentionMs: 7 * day,
  sources: [
    {
      url: 'npm:@hookflo/tern@4.1.0 dist/platforms/algorithms.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://docs.lemonsqueezy.com/help/webhooks/webhook-requests',
      asOf: '2026-12-01',
      facts: ['event', 'retries', 'success'],
    },
    {
      url: 'https://docs.lemonsqueezy.com/help/webhooks/signing-requests',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: ['deliveryId: none', 'redelivery: from the dashboard'],
}))
