import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { all4xx, day } from './units.ts'

/** Jira Cloud webhooks with a secret. Connect apps get a JWT instead. */
export const jira: Provider = /* @__PURE__ */ entry(() => ({
  name: 'jira',
  title: 'Jira Cloud',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-hub-signature',
    prefix: 'sha256=',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { header: 'x-atlassian-webhook-identifier' },
  event: { body: 'webhookEvent' },
  retriesByItself: true,
  retentionMs: 2 * day,
  stopStatuses: all4xx,
  retryNumber: { header: 'x-atlassian-webhook-retry' },
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
    {
      url: 'https://developer.atlassian.com/cloud/jira/platform/webhooks/',
      asOf: '2026-12-01',
      facts: ['event', 'retries'],
    },
    {
      url: 'https://community.developer.atlassian.com/t/new-jira-cloud-webhook-retry-policy/30554',
      asOf: '2026-12-01',
      facts: ['retries', 'stop'],
    },
  ],
  unconfirmed: ['maxBody: 25 MB'],
}))
