import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Square. It signs the address that was registered, to the letter. */
export const square: Provider = /* @__PURE__ */ entry(() => ({
  name: 'square',
  title: 'Square',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-square-hmacsha256-signature',
    encoding: 'base64',
    content: '{url}{body}',
  },
  deliveryId: { body: 'event_id' },
  event: { body: 'type' },
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: 4 * day,
  retryNumber: { header: 'square-retry-number' },
  retryReason: { header: 'square-retry-reason' },
  secretIs: 'the signature key of the subscription',
  sources: [
    {
      url: 'npm:square@46.0.0 wrapper/WebhooksHelper.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developer.squareup.com/docs/webhooks/overview',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'retries', 'redelivery'],
    },
    { url: 'code:square-retry-number', asOf: '2026-12-01', facts: ['retries'] },
    {
      url: 'https://developer.squareup.com/docs/webhooks/troubleshooting',
      asOf: '2026-12-01',
      facts: ['ackDeadline'],
    },
  ],
}))
