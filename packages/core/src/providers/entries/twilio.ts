import { entry } from '../define.ts'
import { twilioBodyIs, twilioContent, twilioCovers } from '../functions/twilio.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Twilio. It signs the public address, and of a form its parameters. */
export const twilio: Provider = /* @__PURE__ */ entry(() => ({
  name: 'twilio',
  title: 'Twilio',
  signature: [
    {
      scheme: 'hmac',
      hash: 'SHA-1',
      header: 'x-twilio-signature',
      encoding: 'base64',
      content: twilioContent,
      bodyIs: twilioBodyIs,
      signsUrl: true,
      when: [{ header: 'x-twilio-webhooks-signature-settings', absent: true }],
    },
    {
      scheme: 'hmac',
      hash: 'SHA-1',
      header: 'x-twilio-signature',
      encoding: 'base64',
      content: twilioContent,
      bodyIs: twilioBodyIs,
      signsUrl: true,
      when: [{ header: 'x-twilio-webhooks-signature-settings', includes: 'algorithm=HMAC_SHA1' }],
    },
    {
      scheme: 'hmac',
      hash: 'SHA-256',
      header: 'x-twilio-signature',
      encoding: 'base64',
      content: twilioContent,
      bodyIs: twilioBodyIs,
      signsUrl: true,
      when: [{ header: 'x-twilio-webhooks-signature-settings', includes: 'algorithm=HMAC_SHA256' }],
    },
  ],
  deliveryId: {
    anyOf: [
      { header: 'i-twilio-idempotency-token' },
      {
        join: [
          {
            anyOf: [{ body: 'MessageSid' }, { body: 'SmsSid' }],
          },
          { anyOf: [{ body: 'MessageStatus' }, { body: 'SmsStatus' }] },
        ],
      },
      { join: [{ body: 'EventSid' }, { body: 'EventType' }] },
      // A call asks several times in one state.
      { digest: 'body' },
    ],
  },
  covers: twilioCovers,
  event: {
    anyOf: [
      { body: 'EventType' },
      { body: 'MessageStatus' },
      { body: 'SmsStatus' },
      { body: 'CallStatus' },
      { value: 'request' },
    ],
  },
  // It does what the answer says.
  success: {
    status: 200,
    body: '<Response/>',
    contentType: 'text/xml',
    when: [{ header: 'content-type', includes: 'application/x-www-form-urlencoded' }],
  },
  ackDeadlineMs: 15 * second,
  retriesByItself: true,
  retentionMs: day,
  secretIs: "the account's auth token, or the secret of a shared key",
  sources: [
    { url: 'npm:twilio@6.3.1 lib/webhooks/webhooks.js', asOf: '2026-12-01', facts: ['signature'] },
    { url: 'https://www.twilio.com/docs/errors/11750', asOf: '2026-12-01', facts: ['success'] },
    { url: 'code:i-twilio-idempotency-token', asOf: '2026-12-01', facts: ['deliveryId'] },
    {
      url: 'https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries'],
    },
  ],
  unconfirmed: [
    'deliveryId: without that header the SID and the status',
    'event: SmsStatus, CallStatus or EventType',
  ],
}))
