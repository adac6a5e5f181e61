import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Paddle Billing. Its own library takes no signature older than five seconds; `toleranceMs` widens that. */
export const paddle: Provider = /* @__PURE__ */ entry(() => ({
  name: 'paddle',
  title: 'Paddle Billing',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'paddle-signature',
    prefix: 'h1=',
    encoding: 'hex',
    content: '{timestamp}:{body}',
    separator: ';',
    timestamp: {
      header: 'paddle-signature',
      separator: ';',
      prefix: 'ts=',
      unit: 's',
      pastMs: 5 * second,
    },
  },
  deliveryId: { body: 'event_id' },
  event: { body: 'event_type' },
  ackDeadlineMs: 5 * second,
  retriesByItself: true,
  // Three days of retries, and notifications can be replayed.
  retentionMs: 30 * day,
  secretIs: 'the secret key of the notification destination (pdl_ntfset_…)',
  sources: [
    {
      url: 'npm:@paddle/paddle-node-sdk@3.10.0 dist/esm/notifications/helpers/webhooks-validator.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developer.paddle.com/webhooks/respond-to-webhooks',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'ackDeadline', 'retries', 'redelivery'],
    },
  ],
}))
