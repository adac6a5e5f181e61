import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day, second } from './units.ts'

/** Bird: its own signature over the address and the digest of the body, and Standard Webhooks. */
export const bird: Provider = /* @__PURE__ */ entry(() => ({
  name: 'bird',
  title: 'Bird',
  signature: [
    {
      scheme: 'hmac',
      hash: 'SHA-256',
      header: 'messagebird-signature',
      encoding: 'base64',
      content: '{timestamp}\n{url}\n{sha256}',
      timestamp: { header: 'messagebird-request-timestamp', unit: 's', pastMs: 300 * second },
    },
    standardV1('webhook', { encoding: 'base64', prefix: 'whsec_', withoutPrefix: 'refuse' }),
  ],
  // The id in the payload is the message's, which has several states.
  deliveryId: { digest: 'body' },
  event: {
    anyOf: [
      { join: [{ body: 'service' }, { body: 'event' }], separator: '.' },
      { body: 'event' },
      { body: 'type' },
      { value: 'message' },
    ],
  },
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'the signing key of the webhook',
  sources: [
    {
      url: 'https://docs.bird.com/api/notifications-api/api-reference/webhooks/verifying-a-webhook',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'retries'],
    },
  ],
  unconfirmed: ['signature: no tolerance is stated; 300 s are ours'],
}))
