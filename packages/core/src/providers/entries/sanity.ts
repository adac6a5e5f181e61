import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Sanity */
export const sanity: Provider = /* @__PURE__ */ entry(() => ({
  name: 'sanity',
  title: 'Sanity',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'sanity-webhook-signature',
    prefix: 'v1=',
    encoding: 'base64url',
    content: '{timestamp}.{body}',
    separator: ',',
    timestamp: { header: 'sanity-webhook-signature', separator: ',', prefix: 't=', unit: 'ms' },
  },
  deliveryId: { header: 'idempotency-key' },
  event: { anyOf: [{ header: 'sanity-operation' }, { value: 'document' }] },
  retriesByItself: true,
  retentionMs: day,
  sources: [
    { url: 'npm:@sanity/webhook@4.0.4 lib/index.mjs', asOf: '2026-12-01', facts: ['signature'] },
    {
      url: 'https://www.sanity.io/docs/content-lake/webhooks',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'retries'],
    },
    { url: 'code:sanity-operation', asOf: '2026-12-01', facts: ['event'] },
  ],
  unconfirmed: ['ackDeadline: 30 s'],
}))
