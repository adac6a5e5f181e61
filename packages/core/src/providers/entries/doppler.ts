import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Doppler */
export const doppler: Provider = /* @__PURE__ */ entry(() => ({
  name: 'doppler',
  title: 'Doppler',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-doppler-signature',
    prefix: 'sha256=',
    encoding: 'hex',
    content: '{body}',
  },
  // The payload may be a text that the user has fixed.
  deliveryId: { dedup: 'none' },
  event: { anyOf: [{ body: 'type' }, { value: 'webhook' }] },
  retriesByItself: true,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'npm:@hookflo/tern@4.1.0 dist/platforms/algorithms.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    { url: 'https://docs.doppler.com/docs/webhooks', asOf: '2026-12-01', facts: ['deliveryId'] },
  ],
  unconfirmed: ['event: type', 'retries'],
}))
