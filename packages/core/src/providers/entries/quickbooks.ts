import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

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
  // CloudEvents since 2025; before, one notification of many entities.
  items: {
    list: '',
    id: { anyOf: [{ join: [{ body: 'source' }, { body: 'id' }], separator: '#' }, { body: 'id' }] },
    event: { body: 'type' },
  },
  ackDeadlineMs: 3 * second,
  success: { status: 200 },
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
    {
      url: 'https://blogs.a.intuit.com/2025/10/14/introducing-enhanced-webhooks-monitoring',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries', 'success'],
    },
    {
      url: 'https://github.com/intuit/quickbooks-v3-php-sdk/releases/tag/v6.2.2',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event'],
    },
  ],
}))
