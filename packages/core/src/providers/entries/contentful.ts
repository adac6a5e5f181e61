import { entry } from '../define.ts'
import { contentfulContent } from '../functions/contentful.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Contentful. It signs the path: behind a proxy that changes it, `publicUrl` says the original. */
export const contentful: Provider = /* @__PURE__ */ entry(() => ({
  name: 'contentful',
  title: 'Contentful',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-contentful-signature',
    encoding: 'hex',
    content: contentfulContent,
    // Thirty seconds are already too old.
    timestamp: {
      header: 'x-contentful-timestamp',
      unit: 'ms',
      pastMs: 30 * second - 1,
      futureMs: 30 * second,
    },
  },
  deliveryId: {
    anyOf: [
      { header: 'x-contentful-idempotency-key', listedIn: 'x-contentful-signed-headers' },
      { digest: 'body' },
    ],
  },
  event: {
    anyOf: [
      { header: 'x-contentful-topic', listedIn: 'x-contentful-signed-headers' },
      { value: 'request' },
    ],
  },
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'the signing secret of the app or space (64 characters)',
  sources: [
    {
      url: 'npm:@contentful/node-apps-toolkit@3.16.1 lib/requests/index.mjs',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'code:x-contentful-idempotency-key',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event'],
    },
    {
      url: 'https://www.contentful.com/developers/docs/webhooks/retry-policy/',
      asOf: '2026-12-01',
      facts: ['retries'],
    },
    {
      url: 'https://www.contentful.com/developers/changelog/idempotency-key-headers-for-webhook-requests/',
      asOf: '2026-12-01',
      facts: ['deliveryId'],
    },
  ],
  unconfirmed: ['ackDeadline: 30 s'],
}))
