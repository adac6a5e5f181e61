import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day, second } from './units.ts'

/** Polar */
export const polar: Provider = /* @__PURE__ */ entry(() => ({
  name: 'polar',
  title: 'Polar',
  signature: standardV1('webhook', { encoding: 'utf8' }),
  deliveryId: { header: 'webhook-id' },
  event: { body: 'type' },
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: 4 * day,
  secretIs: 'the secret of the endpoint, as it is',
  sources: [
    {
      url: 'npm:@polar-sh/sdk@0.49.0 dist/esm/webhooks.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://docs.polar.sh/integrate/webhooks/delivery',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries'],
    },
  ],
}))
