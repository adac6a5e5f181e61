import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, minute } from './units.ts'

/** ElevenLabs */
export const elevenlabs: Provider = /* @__PURE__ */ entry(() => ({
  name: 'elevenlabs',
  title: 'ElevenLabs',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'elevenlabs-signature',
    prefix: 'v0=',
    encoding: 'hex',
    content: '{timestamp}.{body}',
    separator: ',',
    timestamp: {
      header: 'elevenlabs-signature',
      separator: ',',
      prefix: 't=',
      unit: 's',
      pastMs: 30 * minute,
    },
  },
  deliveryId: { digest: 'body' },
  event: { body: 'type' },
  retriesByItself: true,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'npm:@elevenlabs/elevenlabs-js@2.73.0 wrapper/webhooks.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: ['deliveryId: none', 'event: type', 'retries'],
}))
