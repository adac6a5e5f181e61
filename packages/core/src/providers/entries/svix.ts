import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day, second } from './units.ts'

/** Svix */
export const svix: Provider = /* @__PURE__ */ entry(() => ({
  name: 'svix',
  title: 'Svix',
  signature: [standardV1('svix'), standardV1('webhook')],
  deliveryId: { anyOf: [{ header: 'svix-id' }, { header: 'webhook-id' }] },
  event: {
    anyOf: [{ body: 'type' }, { body: 'event_type' }, { body: 'eventType' }, { value: 'message' }],
  },
  ackDeadlineMs: 15 * second,
  retriesByItself: true,
  // A day of retries; messages, also those that succeeded, can be replayed by hand with the same id.
  retentionMs: 30 * day,
  stopHeader: ['webhook-delivery', 'abort-message'],
  secretIs: 'the signing secret of the endpoint (whsec_…)',
  sources: [
    {
      url: 'npm:svix@1.99.1 dist/webhook.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://docs.svix.com/retries',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries', 'redelivery', 'stop'],
    },
  ],
}))
