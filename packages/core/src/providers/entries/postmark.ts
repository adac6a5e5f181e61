import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Postmark signs nothing: Basic authentication in the address is all there is. */
export const postmark: Provider = /* @__PURE__ */ entry(() => ({
  name: 'postmark',
  title: 'Postmark',
  signature: { scheme: 'token', header: 'authorization', prefix: 'Basic ', basic: true },
  deliveryId: {
    anyOf: [
      // A message is opened several times.
      { join: [{ body: 'MessageID' }, { body: 'RecordType' }, { body: 'ReceivedAt' }] },
      { join: [{ body: 'MessageID' }, { body: 'RecordType' }, { body: 'DeliveredAt' }] },
      { join: [{ body: 'MessageID' }, { body: 'RecordType' }, { body: 'BouncedAt' }] },
      { join: [{ body: 'MessageID' }, { body: 'RecordType' }, { body: 'ChangedAt' }] },
      { digest: 'body' },
    ],
  },
  event: { anyOf: [{ body: 'RecordType' }, { value: 'Inbound' }] },
  success: { status: 200 },
  retriesByItself: true,
  retentionMs: 2 * day,
  stopStatuses: [403],
  secretIs: 'user:password of its Basic authentication',
  sources: [
    {
      url: 'https://postmarkapp.com/developer/webhooks/webhooks-overview',
      asOf: '2026-12-01',
      facts: ['signature', 'event'],
    },
    {
      url: 'https://postmarkapp.com/developer/webhooks/open-tracking-webhook',
      asOf: '2026-12-01',
      facts: ['deliveryId'],
    },
    {
      url: 'https://postmarkapp.com/developer/webhooks/subscription-change-webhook',
      asOf: '2026-12-01',
      facts: ['deliveryId'],
    },
    {
      url: 'https://postmarkapp.com/developer/webhooks/spam-complaint-webhook',
      asOf: '2026-12-01',
      facts: ['deliveryId'],
    },
    {
      url: 'https://postmarkapp.com/support/article/understanding-inbound-webhook-retries-in-postmark',
      asOf: '2026-12-01',
      facts: ['retries', 'stop', 'success'],
    },
  ],
  unconfirmed: ['deliveryId: DeliveredAt'],
}))
