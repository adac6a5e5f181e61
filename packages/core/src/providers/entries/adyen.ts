import { entry } from '../define.ts'
import { verifyAdyenItems } from '../functions/adyen.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Adyen: payment webhooks, signed item by item over eight fields, and those of its platforms, signed as a whole. */
export const adyen: Provider = /* @__PURE__ */ entry(() => ({
  name: 'adyen',
  title: 'Adyen',
  signature: [
    {
      scheme: 'function',
      verify: verifyAdyenItems,
      secret: { encoding: 'hex' },
      when: [{ header: 'hmacsignature', absent: true }],
    },
    {
      scheme: 'hmac',
      hash: 'SHA-256',
      header: 'hmacsignature',
      encoding: 'base64',
      content: '{body}',
      secret: { encoding: 'hex' },
    },
  ],
  deliveryId: { anyOf: [{ body: 'data.id' }, { digest: 'body' }] },
  event: { anyOf: [{ body: 'type' }, { value: 'batch' }] },
  items: {
    list: 'notificationItems',
    each: 'NotificationRequestItem',
    id: { join: [{ body: 'pspReference' }, { body: 'eventCode' }, { body: 'success' }] },
    event: { body: 'eventCode' },
  },
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: 35 * day,
  secretIs: 'the HMAC key (hex)',
  sources: [
    {
      url: 'npm:@adyen/api-library@32.1.0 lib/src/utils/hmacValidator.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://docs.adyen.com/development-resources/webhooks/handle-webhook-events',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries'],
    },
  ],
  unconfirmed: ['deliveryId: pspReference, eventCode and success of each item'],
}))
