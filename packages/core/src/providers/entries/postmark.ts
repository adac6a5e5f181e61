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
      { join: [{ body: 'MessageID' }, { body: 'RecordType' }] },
      { body: 'MessageID' },
      { digest: 'body' },
    ],
  },
  event: { anyOf: [{ body: 'RecordType' }, { value: 'Inbound' }] },
  retriesByItself: true,
  retentionMs: 2 * day,
  stopStatuses: [403],
  secretIs: 'user:password of its Basic authentication',
  sources: [
    {
      url: 'https://postmarkapp.com/developer/webhooks/webhooks-overview',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://postmarkapp.com/support/article/understanding-inbound-webhook-retries-in-postmark',
      asOf: '2026-12-01',
      facts: ['retries', 'stop'],
    },
  ],
}))
