import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { all4xx, day, second } from './units.ts'

/** PagerDuty */
export const pagerduty: Provider = /* @__PURE__ */ entry(() => ({
  name: 'pagerduty',
  title: 'PagerDuty',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-pagerduty-signature',
    prefix: 'v1=',
    encoding: 'hex',
    content: '{body}',
    separator: ',',
  },
  deliveryId: { anyOf: [{ body: 'event.id' }, { header: 'x-webhook-id' }] },
  event: { body: 'event.event_type' },
  pingEvents: ['pagey.ping'],
  ackDeadlineMs: 5 * second,
  retriesByItself: true,
  retentionMs: 4 * day,
  stopStatuses: all4xx,
  secretIs: 'the secret of the subscription',
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
    {
      url: 'https://developer.pagerduty.com/docs/webhooks-overview',
      asOf: '2026-12-01',
      facts: ['event'],
    },
    {
      url: 'https://developer.pagerduty.com/docs/webhooks-behavior',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries', 'stop'],
    },
  ],
}))
