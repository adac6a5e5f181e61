import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day } from './units.ts'

/** OpenAI */
export const openai: Provider = /* @__PURE__ */ entry(() => ({
  name: 'openai',
  title: 'OpenAI',
  signature: {
    ...standardV1('webhook', { encoding: 'base64', prefix: 'whsec_', withoutPrefix: 'utf8' }),
    bare: true,
  },
  deliveryId: { header: 'webhook-id' },
  event: { body: 'type' },
  retriesByItself: true,
  retentionMs: 4 * day,
  secretIs: 'the signing secret of the endpoint (whsec_…)',
  sources: [
    {
      url: 'npm:openai@6.49.0 resources/webhooks/webhooks.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://platform.openai.com/docs/guides/webhooks',
      asOf: '2026-12-01',
      facts: ['retries'],
    },
  ],
  unconfirmed: ['ackDeadline: 20 s', 'retries: 72 hours, exponential'],
}))
