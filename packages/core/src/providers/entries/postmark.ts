import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { all4xx, day } from './units.ts'

/** Postmark signs nothing: Basic authentication in the address is all there is. */
export const postmark: Provider = /* @__PURE__ */ entry(() => ({
  name: 'postmark',
  title: 'Postmark',
  signature: { scheme: 'token', header: 'authorization', prefix: 'Basic ', basic: true },
  deliveryId: {
    anyOf: [
      { header: 'x-pm-webhook-trace-id' },
      {
        join: [
          { body: 'MessageID' },
          { body: 'RecordType' },
          // One message has several recipients, and each opens it several times.
          { anyOf: [{ body: 'Recipient' }, { body: 'Email' }] },
          {
            anyOf: [
              { body: 'ReceivedAt' },
              { body: 'DeliveredAt' },
              { body: 'BouncedAt' },
              { body: 'ChangedAt' },
            ],
          },
        ],
      },
      { digest: 'body' },
    ],
  },
  event: { anyOf: [{ body: 'RecordType' }, { value: 'Inbound' }] },
  success: { status: 200 },
  retriesByItself: true,
  retentionMs: 2 * day,
  // Since August 2026 of outbound webhooks; of inbound ones 403 alone.
  stopStatuses: all4xx,
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
    {
      url: 'https://github.com/ActiveCampaign/postmark-skills/pull/6',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'retries', 'stop'],
    },
  ],
}))
