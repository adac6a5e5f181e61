import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Fourthwall */
export const fourthwall: Provider = /* @__PURE__ */ entry(() => ({
  name: 'fourthwall',
  title: 'Fourthwall',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-fourthwall-hmac-sha256',
    encoding: 'base64',
    content: '{body}',
  },
  deliveryId: { anyOf: [{ body: 'id' }, { digest: 'body' }] },
  event: { anyOf: [{ body: 'type' }, { value: 'webhook' }] },
  retriesByItself: true,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/fourthwall.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: ['deliveryId: id', 'event: type', 'retries'],
}))
