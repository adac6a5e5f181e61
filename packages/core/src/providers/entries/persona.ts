import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Persona. While a secret is rotated its header has two sets of time and signature. */
export const persona: Provider = /* @__PURE__ */ entry(() => ({
  name: 'persona',
  title: 'Persona',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'persona-signature',
    groups: ' ',
    separator: ',',
    prefix: 'v1=',
    encoding: 'hex',
    content: '{timestamp}.{body}',
    timestamp: {
      header: 'persona-signature',
      separator: ',',
      prefix: 't=',
      unit: 's',
      pastMs: 300 * second,
    },
  },
  deliveryId: { body: 'data.id' },
  event: { body: 'data.attributes.name' },
  ackDeadlineMs: 5 * second,
  retriesByItself: true,
  retentionMs: 3 * day,
  retryNumber: { header: 'persona-webhook-attempts-made' },
  secretIs: 'the secret of the webhook (wbhsec_…)',
  sources: [
    {
      url: 'https://docs.withpersona.com/webhooks-best-practices',
      asOf: '2026-12-01',
      facts: ['signature', 'ackDeadline'],
    },
    {
      url: 'https://docs.withpersona.com/webhooks',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'retries'],
    },
    {
      url: 'https://docs.withpersona.com/api-reference/webhooks/webhooks-account-events/webhook-account-created',
      asOf: '2026-12-01',
      facts: ['retries'],
    },
  ],
  unconfirmed: ['retries: 7', 'signature: no tolerance is stated; 300 s are ours'],
}))
