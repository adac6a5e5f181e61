import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Zoom */
export const zoom: Provider = /* @__PURE__ */ entry(() => ({
  name: 'zoom',
  title: 'Zoom',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-zm-signature',
    prefix: 'v0=',
    encoding: 'hex',
    content: 'v0:{timestamp}:{body}',
    timestamp: { header: 'x-zm-request-timestamp', unit: 's', pastMs: 300 * second },
  },
  deliveryId: { digest: 'body' },
  event: { body: 'event' },
  handshakes: [
    // Repeated every 72 hours.
    {
      name: 'url_validation',
      when: [{ body: 'event', equals: 'endpoint.url_validation' }],
      answer: {
        json: {
          plainToken: { body: 'payload.plainToken' },
          encryptedToken: { hmac: { body: 'payload.plainToken' } },
        },
      },
    },
  ],
  ackDeadlineMs: 3 * second,
  success: { status: 200 },
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'the secret token of the app',
  sources: [
    {
      url: 'npm:@zoom/rivet@0.4.0 chat/chat.mjs',
      asOf: '2026-12-01',
      facts: ['signature', 'handshakes'],
    },
    {
      url: 'https://developers.zoom.us/docs/api/webhooks/',
      asOf: '2026-12-01',
      facts: ['event', 'deliveryId', 'ackDeadline', 'retries', 'handshakes'],
    },
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developers.zoom.us/blog/webhook-delays.md',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries', 'success'],
    },
  ],
}))
