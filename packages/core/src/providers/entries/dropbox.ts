import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Dropbox */
export const dropbox: Provider = /* @__PURE__ */ entry(() => ({
  name: 'dropbox',
  title: 'Dropbox',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-dropbox-signature',
    encoding: 'hex',
    content: '{body}',
  },
  // Its messages only say that something changed: equal bodies are distinct changes.
  deliveryId: { dedup: 'none' },
  event: { value: 'changes' },
  handshakes: [
    {
      name: 'challenge',
      method: 'GET',
      when: [{ query: 'challenge' }],
      answer: {
        text: { query: 'challenge' },
        headers: {
          'content-type': { value: 'text/plain' },
          'x-content-type-options': { value: 'nosniff' },
        },
      },
    },
  ],
  success: { status: 200 },
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'the app secret',
  sources: [
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/dropbox.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://www.dropbox.com/developers/reference/webhooks',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'handshakes'],
    },
    {
      url: 'https://www.dropbox.com/developers/reference/webhooks',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries', 'success'],
    },
  ],
}))
