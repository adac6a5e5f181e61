import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day } from './units.ts'

/** Autumn */
export const autumn: Provider = /* @__PURE__ */ entry(() => ({
  name: 'autumn',
  title: 'Autumn',
  signature: standardV1('svix'),
  deliveryId: { header: 'svix-id' },
  event: { body: 'type' },
  retriesByItself: true,
  retentionMs: 30 * day,
  secretIs: 'the signing secret of the endpoint (whsec_…)',
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
  ],
  unconfirmed: ['retries: those of Svix'],
}))
