import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** CircleCI */
export const circleci: Provider = /* @__PURE__ */ entry(() => ({
  name: 'circleci',
  title: 'CircleCI',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'circleci-signature',
    prefix: 'v1=',
    encoding: 'hex',
    content: '{body}',
    separator: ',',
  },
  deliveryId: { anyOf: [{ body: 'id' }, { digest: 'body' }] },
  event: { anyOf: [{ header: 'circleci-event-type' }, { body: 'type' }] },
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: 2 * day,
  sources: [
    {
      url: 'https://circleci.com/docs/guides/integration/outbound-webhooks/',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'ackDeadline', 'retries'],
    },
  ],
}))
