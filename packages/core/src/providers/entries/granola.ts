import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day } from './units.ts'

/** Granola */
export const granola: Provider = /* @__PURE__ */ entry(() => ({
  name: 'granola',
  title: 'Granola',
  signature: standardV1('webhook'),
  deliveryId: { header: 'webhook-id' },
  event: { anyOf: [{ body: 'event_type' }, { value: 'message' }] },
  retriesByItself: true,
  retentionMs: 7 * day,
  secretIs: 'the signing secret of the endpoint (whsec_…)',
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
  ],
  unconfirmed: ['retries'],
}))
