import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { all4xx, day, second } from './units.ts'

/** Zendesk */
export const zendesk: Provider = /* @__PURE__ */ entry(() => ({
  name: 'zendesk',
  title: 'Zendesk',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-zendesk-webhook-signature',
    encoding: 'base64',
    content: '{timestamp}{body}',
    timestamp: {
      header: 'x-zendesk-webhook-signature-timestamp',
      unit: 'iso',
      pastMs: 300 * second,
    },
  },
  deliveryId: { header: 'x-zendesk-webhook-invocation-id' },
  event: { anyOf: [{ body: 'type' }, { value: 'event' }] },
  retriesByItself: true,
  retentionMs: day,
  // It repeats 409, and 429 and 503 with a short Retry-After.
  stopStatuses: [...all4xx, 500],
  secretIs: 'the signing secret of the webhook',
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
    {
      url: 'https://developer.zendesk.com/documentation/webhooks/verifying/',
      asOf: '2026-12-01',
      facts: ['signature', 'event'],
    },
    {
      url: 'https://developer.zendesk.com/api-reference/webhooks/introduction',
      asOf: '2026-12-01',
      facts: ['retries', 'stop'],
    },
  ],
  unconfirmed: [
    'ackDeadline: 10 to 12 s',
    'maxBody: 256 KB',
    'signature: no tolerance is stated; 300 s are ours',
  ],
}))
