import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Xero. Its intent to receive is a list without events; a wrong signature has to be answered 401. */
export const xero: Provider = /* @__PURE__ */ entry(() => ({
  name: 'xero',
  title: 'Xero',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-xero-signature',
    encoding: 'base64',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { value: 'batch' },
  items: {
    list: 'events',
    id: {
      join: [
        { body: 'tenantId' },
        { body: 'resourceId' },
        { body: 'eventCategory' },
        { body: 'eventType' },
        { body: 'eventDateUtc' },
      ],
    },
    event: { join: [{ body: 'eventCategory' }, { body: 'eventType' }], separator: '.' },
  },
  ackDeadlineMs: 5 * second,
  retriesByItself: true,
  retentionMs: 2 * day,
  // It takes an answer with a body for a failure.
  success: { status: 200, body: '' },
  secretIs: 'the webhook signing key',
  sources: [
    {
      url: 'https://developer.xero.com/documentation/guides/webhooks/overview/',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'ackDeadline', 'success'],
    },
  ],
  unconfirmed: ['retries: 24 hours'],
}))
