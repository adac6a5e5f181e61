import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { all4xx, day, mebibyte, second } from './units.ts'

/** Bitbucket Cloud. What is larger than 256 KB it does not send. */
export const bitbucket: Provider = /* @__PURE__ */ entry(() => ({
  name: 'bitbucket',
  title: 'Bitbucket Cloud',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-hub-signature',
    prefix: 'sha256=',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { header: 'x-request-uuid' },
  event: { header: 'x-event-key' },
  maxBodyBytes: mebibyte,
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: 3 * day,
  stopStatuses: all4xx,
  retryNumber: { header: 'x-attempt-number' },
  sources: [
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/bitbucket.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'maxBody'],
    },
    {
      url: 'https://support.atlassian.com/bitbucket-cloud/docs/troubleshoot-webhooks/',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries', 'stop', 'maxBody'],
    },
  ],
}))
