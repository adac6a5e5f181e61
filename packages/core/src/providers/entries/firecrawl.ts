import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Firecrawl */
export const firecrawl: Provider = /* @__PURE__ */ entry(() => ({
  name: 'firecrawl',
  title: 'Firecrawl',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-firecrawl-signature',
    prefix: 'sha256=',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { anyOf: [{ body: 'webhookId' }, { digest: 'body' }] },
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
      url: 'https://docs.firecrawl.dev/api-reference/endpoint/webhook-crawl-started',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'retries'],
    },
  ],
}))
