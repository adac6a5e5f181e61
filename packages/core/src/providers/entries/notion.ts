import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Notion */
export const notion: Provider = /* @__PURE__ */ entry(() => ({
  name: 'notion',
  title: 'Notion',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-notion-signature',
    prefix: 'sha256=',
    encoding: 'hex',
    content: '{body}',
    anyCase: true,
  },
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  handshakes: [
    // The token comes this way, unsigned: `onHandshake` hears it.
    {
      name: 'verification_token',
      signed: false,
      when: [{ body: 'verification_token' }],
      answer: { text: { value: '' } },
    },
  ],
  retriesByItself: true,
  retentionMs: 2 * day,
  retryNumber: { body: 'attempt_number' },
  secretIs: 'the verification token',
  sources: [
    {
      url: 'npm:@notionhq/client@5.26.0 build/src/webhooks.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developers.notion.com/reference/webhooks',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'handshakes'],
    },
  ],
  unconfirmed: ['retries: 8 over about 24 hours'],
}))
