import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Kick */
export const kick: Provider = /* @__PURE__ */ entry(() => ({
  name: 'kick',
  title: 'Kick',
  signature: {
    scheme: 'rsa',
    header: 'kick-event-signature',
    encoding: 'base64',
    content: '{header:kick-event-message-id}.{timestamp}.{body}',
    timestamp: { header: 'kick-event-message-timestamp', unit: 'iso' },
  },
  deliveryId: { header: 'kick-event-message-id' },
  event: { anyOf: [{ header: 'kick-event-type' }, { value: 'event' }] },
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: "Kick's public key in PEM",
  sources: [
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/kick.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
    { url: 'code:kick-event-type', asOf: '2026-12-01', facts: ['event'] },
  ],
  unconfirmed: ['retries'],
}))
