import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** LINE. The test of its console has no events, and is answered without the handler. */
export const line: Provider = /* @__PURE__ */ entry(() => ({
  name: 'line',
  title: 'LINE',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-line-signature',
    encoding: 'base64',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { value: 'batch' },
  items: { list: 'events', id: { body: 'webhookEventId' }, event: { body: 'type' } },
  retriesByItself: true,
  retentionMs: 3 * day,
  secretIs: 'the channel secret',
  sources: [
    {
      url: 'npm:@line/bot-sdk@11.0.0 dist/validate-signature.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developers.line.biz/en/docs/messaging-api/receiving-messages/',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'redelivery'],
    },
  ],
  unconfirmed: ['ackDeadline: 1 to 2 s', 'retries: none, unless redelivery is switched on'],
}))
