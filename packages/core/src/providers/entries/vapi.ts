import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Vapi */
export const vapi: Provider = /* @__PURE__ */ entry(() => ({
  name: 'vapi',
  title: 'Vapi',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-vapi-signature',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { anyOf: [{ body: 'message.type' }, { value: 'message' }] },
  retriesByItself: true,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: ['deliveryId: none', 'event: message.type', 'retries'],
}))
