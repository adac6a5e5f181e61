import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, mebibyte } from './units.ts'

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
  retriesByItself: true,
  retentionMs: 3 * day,
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
  ],
  unconfirmed: ['ackDeadline: 10 s', 'retries: two more'],
}))
