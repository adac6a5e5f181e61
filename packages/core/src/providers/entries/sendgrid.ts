import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, mebibyte } from './units.ts'

/** SendGrid events: a list of them in each request. */
export const sendgrid: Provider = /* @__PURE__ */ entry(() => ({
  name: 'sendgrid',
  title: 'SendGrid event webhook',
  signature: {
    scheme: 'ecdsa-p256',
    header: 'x-twilio-email-event-webhook-signature',
    encoding: 'base64',
    content: '{timestamp}{body}',
    timestamp: { header: 'x-twilio-email-event-webhook-timestamp', unit: 's' },
    secret: { encoding: 'base64' },
  },
  deliveryId: { digest: 'body' },
  event: { value: 'batch' },
  items: { list: '', id: { body: 'sg_event_id' }, event: { body: 'event' } },
  maxBodyBytes: 2 * mebibyte,
  retriesByItself: true,
  retentionMs: 3 * day,
  secretIs: 'the verification key of the event webhook (base64)',
  sources: [
    {
      url: 'npm:@sendgrid/eventwebhook@8.0.0 src/eventwebhook.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event'],
    },
    {
      url: 'https://docs.sendgrid.com/for-developers/tracking-events/troubleshooting',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'retries'],
    },
  ],
  unconfirmed: ['maxBody: a batch of about 768 KB'],
}))
