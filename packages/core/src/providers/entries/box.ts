import { entry } from '../define.ts'
import { boxContent } from '../functions/escaped.ts'
import type { Provider } from '../provider.ts'
import { day, minute, second } from './units.ts'

/** Box V2 webhooks, by either of the two keys. */
export const box: Provider = /* @__PURE__ */ entry(() => ({
  name: 'box',
  title: 'Box',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: ['box-signature-primary', 'box-signature-secondary'],
    encoding: 'base64',
    content: boxContent,
    timestamp: { header: 'box-delivery-timestamp', unit: 'iso', pastMs: 10 * minute },
    when: [
      { header: 'box-signature-version', equals: '1' },
      { header: 'box-signature-algorithm', equals: 'HmacSHA256' },
    ],
  },
  // The id in the header is another one in every attempt.
  deliveryId: { anyOf: [{ body: 'id' }, { digest: 'body' }] },
  event: { body: 'trigger' },
  ackDeadlineMs: 30 * second,
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'a signature key of the app, primary or secondary',
  sources: [
    {
      url: 'npm:box-node-sdk@10.12.0 lib/managers/webhooks.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developer.box.com/guides/webhooks/',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'ackDeadline', 'retries'],
    },
  ],
}))
