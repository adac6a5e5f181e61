import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Telnyx */
export const telnyx: Provider = /* @__PURE__ */ entry(() => ({
  name: 'telnyx',
  title: 'Telnyx',
  signature: {
    scheme: 'ed25519',
    header: 'telnyx-signature-ed25519',
    encoding: 'base64',
    content: '{timestamp}|{body}',
    timestamp: { header: 'telnyx-timestamp', unit: 's', pastMs: 300 * second },
    secret: { encoding: 'base64' },
  },
  deliveryId: { body: 'data.id' },
  event: { body: 'data.event_type' },
  retriesByItself: true,
  retentionMs: 2 * day,
  retryNumber: { body: 'meta.attempt' },
  secretIs: "the account's public key (base64)",
  sources: [
    { url: 'npm:telnyx@7.24.0 lib/webhooks.js', asOf: '2026-12-01', facts: ['signature'] },
    {
      url: 'https://developers.telnyx.com/docs/messaging/messages/receiving-webhooks',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event'],
    },
  ],
  unconfirmed: ['retries'],
}))
