import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Typeform */
export const typeform: Provider = /* @__PURE__ */ entry(() => ({
  name: 'typeform',
  title: 'Typeform',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'typeform-signature',
    prefix: 'sha256=',
    encoding: 'base64',
    content: '{body}',
  },
  deliveryId: { body: 'event_id' },
  event: { body: 'event_type' },
  ackDeadlineMs: 30 * second,
  stopStatuses: [404, 410],
  retriesByItself: true,
  retentionMs: 3 * day,
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
    {
      url: 'https://www.typeform.com/developers/webhooks/secure-your-webhooks/',
      asOf: '2026-12-01',
      facts: ['signature', 'event'],
    },
    {
      url: 'https://www.typeform.com/developers/webhooks/',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries', 'stop'],
    },
  ],
}))
