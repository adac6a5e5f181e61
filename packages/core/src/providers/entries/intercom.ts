import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Intercom */
export const intercom: Provider = /* @__PURE__ */ entry(() => ({
  name: 'intercom',
  title: 'Intercom',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-1',
    header: 'x-hub-signature',
    prefix: 'sha1=',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { body: 'id' },
  event: { body: 'topic' },
  pingEvents: ['ping'],
  retriesByItself: true,
  retentionMs: day,
  stopStatuses: [410],
  secretIs: "the app's client secret",
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
    {
      url: 'https://developers.intercom.com/docs/webhooks/webhook-notifications',
      asOf: '2026-12-01',
      facts: ['event', 'stop'],
    },
  ],
  unconfirmed: ['ackDeadline: 5 s', 'retries: one after a minute'],
}))
