import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day } from './units.ts'

/** Dodo Payments */
export const dodoPayments: Provider = /* @__PURE__ */ entry(() => ({
  name: 'dodo-payments',
  title: 'Dodo Payments',
  signature: standardV1('webhook'),
  deliveryId: { header: 'webhook-id' },
  event: { anyOf: [{ body: 'type' }, { body: 'event_type' }, { value: 'message' }] },
  retriesByItself: true,
  retentionMs: 7 * day,
  secretIs: 'the signing secret of the endpoint (whsec_…)',
  sources: [
    {
      url: 'npm:@hookflo/tern@4.1.0 dist/platforms/algorithms.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
  ],
  unconfirmed: ['event: type', 'retries'],
}))
