import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Sentry */
export const sentry: Provider = /* @__PURE__ */ entry(() => ({
  name: 'sentry',
  title: 'Sentry',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'sentry-hook-signature',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { header: 'request-id' },
  event: { header: 'sentry-hook-resource' },
  action: { body: 'action' },
  ackDeadlineMs: 1 * second,
  retriesByItself: true,
  retentionMs: day,
  secretIs: "the integration's client secret",
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'npm:@hookflo/tern@4.1.0 dist/platforms/algorithms.js',
      asOf: '2026-12-01',
      facts: ['deliveryId'],
    },
    {
      url: 'https://docs.sentry.io/organization/integrations/integration-platform/webhooks/',
      asOf: '2026-12-01',
      facts: ['event'],
    },
    {
      url: 'https://sentry.io/changelog/2023-10-3-change-to-integration-platform-webhook-handling',
      asOf: '2026-12-01',
      facts: ['ackDeadline'],
    },
    {
      url: 'https://docs.sentry.io/integrations/integration-platform/webhooks/',
      asOf: '2026-12-01',
      facts: ['event', 'deliveryId'],
    },
  ],
  unconfirmed: ['retries: none'],
}))
