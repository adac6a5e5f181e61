import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day } from './units.ts'

/** Replicate */
export const replicate: Provider = /* @__PURE__ */ entry(() => ({
  name: 'replicate',
  title: 'Replicate',
  signature: standardV1('webhook'),
  deliveryId: { header: 'webhook-id' },
  event: { anyOf: [{ body: 'status' }, { value: 'prediction' }] },
  retriesByItself: true,
  retentionMs: 3 * day,
  secretIs: 'the signing secret of the endpoint (whsec_…)',
  sources: [
    {
      url: 'npm:replicate@1.4.0 lib/util.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
  ],
  unconfirmed: ['event: the status of the prediction', 'retries'],
}))
