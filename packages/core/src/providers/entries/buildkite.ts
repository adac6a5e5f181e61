import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Buildkite */
export const buildkite: Provider = /* @__PURE__ */ entry(() => ({
  name: 'buildkite',
  title: 'Buildkite',
  signature: [
    {
      scheme: 'hmac',
      hash: 'SHA-256',
      header: 'x-buildkite-signature',
      separator: ',',
      prefix: 'signature=',
      encoding: 'hex',
      content: '{timestamp}.{body}',
      timestamp: {
        header: 'x-buildkite-signature',
        separator: ',',
        prefix: 'timestamp=',
        unit: 's',
        pastMs: 300 * second,
      },
    },
    { scheme: 'token', header: 'x-buildkite-token' },
  ],
  deliveryId: { digest: 'body' },
  event: { header: 'x-buildkite-event' },
  pingEvents: ['ping'],
  retriesByItself: false,
  retentionMs: day,
  secretIs: 'the token of the webhook',
  sources: [
    {
      url: 'https://buildkite.com/docs/apis/webhooks/pipelines',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'retries', 'redelivery'],
    },
  ],
}))
