import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Langfuse */
export const langfuse: Provider = /* @__PURE__ */ entry(() => ({
  name: 'langfuse',
  title: 'Langfuse',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-langfuse-signature',
    prefix: 'v1=',
    encoding: 'hex',
    content: '{timestamp}.{body}',
    separator: ',',
    timestamp: {
      header: 'x-langfuse-signature',
      separator: ',',
      prefix: 't=',
      unit: 's',
      pastMs: 300 * second,
    },
  },
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  action: { body: 'action' },
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: 'the signing secret (lf-whsec_…)',
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://github.com/langfuse/langfuse/blob/main/packages/shared/src/encryption/signature.ts',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://github.com/langfuse/langfuse-docs/blob/main/pages/docs/prompt-management/features/webhooks-slack-integrations.mdx',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'retries'],
    },
  ],
  unconfirmed: ['signature: no tolerance is stated; 300 s are ours'],
}))
