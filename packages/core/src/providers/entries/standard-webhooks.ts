import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1, standardV1a } from './standard-signatures.ts'
import { day, second } from './units.ts'

/** Every sender that follows Standard Webhooks, by either header family. */
export const standardWebhooks: Provider = /* @__PURE__ */ entry(() => ({
  name: 'standard-webhooks',
  title: 'Standard Webhooks',
  signature: [
    standardV1('webhook'),
    standardV1a('webhook'),
    standardV1('svix'),
    standardV1a('svix'),
  ],
  deliveryId: { anyOf: [{ header: 'webhook-id' }, { header: 'svix-id' }] },
  event: {
    anyOf: [{ body: 'type' }, { body: 'event_type' }, { body: 'eventType' }, { value: 'message' }],
  },
  ackDeadlineMs: 15 * second,
  retriesByItself: true,
  retentionMs: 7 * day,
  // 410 switches an endpoint off.
  stopStatuses: [410],
  secretIs: "the sender's secret (whsec_…), or its public key (whpk_…)",
  sources: [
    { url: 'npm:standardwebhooks@1.1.1 dist/index.js', asOf: '2026-12-01', facts: ['signature'] },
    {
      url: 'https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'ackDeadline', 'retries', 'stop'],
    },
  ],
}))
