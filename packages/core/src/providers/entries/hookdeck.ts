import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Hookdeck */
export const hookdeck: Provider = /* @__PURE__ */ entry(() => ({
  name: 'hookdeck',
  title: 'Hookdeck',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: ['x-hookdeck-signature', 'x-hookdeck-signature-2'],
    encoding: 'base64',
    content: '{body}',
  },
  deliveryId: { anyOf: [{ header: 'x-hookdeck-eventid' }, { digest: 'body' }] },
  event: { anyOf: [{ body: 'type' }, { value: 'event' }] },
  retriesByItself: true,
  retentionMs: 7 * day,
  secretIs: 'the signing secret of the project',
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
  ],
  unconfirmed: ['event: that of the sender behind it', 'retries: as the connection says'],
}))
