import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Cal.com */
export const calcom: Provider = /* @__PURE__ */ entry(() => ({
  name: 'calcom',
  title: 'Cal.com',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-cal-signature-256',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { body: 'triggerEvent' },
  pingEvents: ['PING'],
  retriesByItself: true,
  retentionMs: day,
  sources: [
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/calcom.post.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://cal.com/docs/developing/guides/automation/webhooks',
      asOf: '2026-12-01',
      facts: ['event'],
    },
    {
      url: 'https://github.com/calcom/cal.com/blob/main/docs/developing/guides/automation/webhooks.mdx',
      asOf: '2026-12-01',
      facts: ['signature', 'event'],
    },
  ],
  unconfirmed: ['deliveryId: none', 'retries: none'],
}))
