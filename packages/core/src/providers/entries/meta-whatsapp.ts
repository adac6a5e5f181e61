import { entry } from '../define.ts'
import { metaContent } from '../functions/escaped.ts'
import { metaItems } from '../functions/meta.ts'
import type { Provider } from '../provider.ts'
import { day, mebibyte } from './units.ts'

/** Meta. It signs the form with escaped characters, whichever is on the wire. */
export const metaWhatsapp: Provider = /* @__PURE__ */ entry(() => ({
  name: 'meta-whatsapp',
  title: 'Meta (WhatsApp, Messenger, Instagram)',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-hub-signature-256',
    prefix: 'sha256=',
    encoding: 'hex',
    content: metaContent,
  },
  deliveryId: { digest: 'body' },
  event: { anyOf: [{ body: 'object' }, { value: 'batch' }] },
  items: metaItems,
  handshakes: [
    {
      name: 'hub_challenge',
      method: 'GET',
      when: [{ query: 'hub.mode', equals: 'subscribe' }, { query: 'hub.challenge' }],
      token: { query: 'hub.verify_token' },
      answer: { text: { query: 'hub.challenge' } },
    },
  ],
  success: { status: 200 },
  maxBodyBytes: 4 * mebibyte,
  retriesByItself: true,
  retentionMs: 8 * day,
  secretIs: 'the app secret',
  sources: [
    {
      url: 'npm:whatsapp-api-js@6.3.0 lib/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'handshakes'],
    },
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/meta.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developers.facebook.com/docs/graph-api/webhooks/getting-started',
      asOf: '2026-12-01',
      facts: ['handshakes', 'event'],
    },
    {
      url: 'https://developers.facebook.com/documentation/business-messaging/messenger-platform/webhooks/webhook-events/standby',
      asOf: '2026-12-01',
      facts: ['event'],
    },
    {
      url: 'https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/overview',
      asOf: '2026-12-01',
      facts: ['success', 'maxBody', 'retries'],
    },
  ],
  unconfirmed: [
    'retries: other products than WhatsApp about 36 hours',
    'deliveryId: of messages and statuses theirs; of the rest a digest with the id and time of the entry',
  ],
}))
