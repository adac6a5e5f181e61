import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, mebibyte, second } from './units.ts'

/** Linear */
export const linear: Provider = /* @__PURE__ */ entry(() => ({
  name: 'linear',
  title: 'Linear',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'linear-signature',
    encoding: 'hex',
    content: '{body}',
    timestamp: { body: 'webhookTimestamp', unit: 'ms', pastMs: 60 * second },
  },
  deliveryId: { anyOf: [{ header: 'linear-delivery' }, { digest: 'body' }] },
  event: { anyOf: [{ header: 'linear-event' }, { body: 'type' }] },
  action: { body: 'action' },
  maxBodyBytes: 5 * mebibyte,
  ackDeadlineMs: 5 * second,
  success: { status: 200 },
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: 'the signing secret of the webhook (lin_wh_…)',
  sources: [
    {
      url: 'npm:@linear/sdk@98.0.0 dist/webhooks.mjs',
      asOf: '2026-12-01',
      facts: ['signature', 'event', 'maxBody'],
    },
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['deliveryId'],
    },
    {
      url: 'https://developers.linear.app/docs/graphql/webhooks',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries', 'success'],
    },
  ],
}))
