import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day } from './units.ts'

/** Resend */
export const resend: Provider = /* @__PURE__ */ entry(() => ({
  name: 'resend',
  title: 'Resend',
  signature: standardV1('svix'),
  deliveryId: { header: 'svix-id' },
  event: { body: 'type' },
  retriesByItself: true,
  // Eight attempts in 28 hours; messages, also those that succeeded, can be replayed.
  retentionMs: 30 * day,
  secretIs: 'the signing secret of the endpoint (whsec_…)',
  sources: [
    {
      url: 'npm:resend@6.38.0 dist/index.mjs',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://resend.com/docs/webhooks/retries-and-replays',
      asOf: '2026-12-01',
      facts: ['retries', 'redelivery'],
    },
  ],
}))
