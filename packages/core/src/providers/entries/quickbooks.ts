import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** QuickBooks Online */
export const quickbooks: Provider = /* @__PURE__ */ entry(() => ({
  name: 'quickbooks',
  title: 'QuickBooks Online',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'intuit-signature',
    encoding: 'base64',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { value: 'notification' },
  retriesByItself: true,
  retentionMs: 3 * day,
  secretIs: 'the verifier token',
  sources: [
    { url: 'code:intuit-signature', asOf: '2026-12-01', facts: ['signature'] },
    {
      url: 'https://gist.github.com/gregawoods/67fde88882c00ae11c2ce11d35306647',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: [
    'deliveryId: none; a list of entities',
    'event: name and operation of the entities',
    'ackDeadline: 3 s',
    'retries: after 20, 30 and 50 min, then hours',
  ],
}))
