import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Calendly */
export const calendly: Provider = /* @__PURE__ */ entry(() => ({
  name: 'calendly',
  title: 'Calendly',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'calendly-webhook-signature',
    prefix: 'v1=',
    encoding: 'hex',
    content: '{timestamp}.{body}',
    separator: ',',
    timestamp: {
      header: 'calendly-webhook-signature',
      separator: ',',
      prefix: 't=',
      unit: 's',
      pastMs: 300 * second,
    },
  },
  deliveryId: {
    anyOf: [
      { join: [{ body: 'event' }, { body: 'payload.uri' }, { body: 'created_at' }] },
      { digest: 'body' },
    ],
  },
  event: { body: 'event' },
  ackDeadlineMs: 15 * second,
  stopStatuses: [410],
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: 'the signing key of the subscription',
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developer.calendly.com/api-docs/ZG9jOjM2MzE2MDM4-webhook-signatures',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event'],
    },
    {
      url: 'https://developer.calendly.com/docs/webhooks/overview',
      asOf: '2026-12-01',
      facts: ['signature', 'ackDeadline', 'stop'],
    },
    {
      url: 'https://developer.calendly.com/api-docs/overview/webhooks/webhook-errors',
      asOf: '2026-12-01',
      facts: ['retries'],
    },
  ],
}))
