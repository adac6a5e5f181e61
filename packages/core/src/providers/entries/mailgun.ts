import { entry } from '../define.ts'
import { verifyMailgun } from '../functions/mailgun.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Mailgun. Its signature covers a time and a token, not the event. */
export const mailgun: Provider = /* @__PURE__ */ entry(() => ({
  name: 'mailgun',
  title: 'Mailgun',
  signature: { scheme: 'function', readsTime: true, verify: verifyMailgun },
  deliveryId: { anyOf: [{ body: 'event-data.id' }, { body: 'signature.token' }] },
  event: { body: 'event-data.event' },
  covers: { join: [{ body: 'signature.timestamp' }, { body: 'signature.token' }] },
  success: { status: 200 },
  retriesByItself: true,
  retentionMs: day,
  stopStatuses: [406],
  secretIs: 'the webhook signing key',
  sources: [
    {
      url: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries',
      asOf: '2026-12-01',
      facts: ['retries', 'stop'],
    },
    {
      url: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/webhook-retries',
      asOf: '2026-12-01',
      facts: ['success'],
    },
  ],
}))
