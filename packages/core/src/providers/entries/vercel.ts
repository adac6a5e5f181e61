import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Vercel */
export const vercel: Provider = /* @__PURE__ */ entry(() => ({
  name: 'vercel',
  title: 'Vercel',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-1',
    header: 'x-vercel-signature',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  ackDeadlineMs: 30 * second,
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: 'the secret of the webhook or the integration',
  sources: [
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/vercel.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://vercel.com/docs/webhooks/webhooks-api',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'ackDeadline', 'retries'],
    },
    { url: 'https://vercel.com/docs/webhooks', asOf: '2026-12-01', facts: ['signature'] },
  ],
}))
