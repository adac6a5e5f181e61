import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Metronome */
export const metronome: Provider = /* @__PURE__ */ entry(() => ({
  name: 'metronome',
  title: 'Metronome',
  signature: [
    {
      scheme: 'hmac',
      hash: 'SHA-256',
      header: 'metronome-webhook-signature',
      encoding: 'hex',
      content: '{timestamp}\n{body}',
      timestamp: { header: 'x-metronome-date', unit: 'http-date', pastMs: 300 * second },
    },
    {
      scheme: 'hmac',
      hash: 'SHA-256',
      header: 'metronome-webhook-signature',
      encoding: 'hex',
      content: '{timestamp}\n{body}',
      timestamp: { header: 'date', unit: 'http-date', pastMs: 300 * second },
      when: [{ header: 'x-metronome-date', absent: true }],
    },
  ],
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  retriesByItself: true,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'npm:@metronome/sdk@3.10.0 resources/webhooks.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: ['retries'],
}))
