import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Airtable */
export const airtable: Provider = /* @__PURE__ */ entry(() => ({
  name: 'airtable',
  title: 'Airtable',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-airtable-content-mac',
    prefix: 'hmac-sha256=',
    encoding: 'hex',
    content: '{body}',
    secret: { encoding: 'base64' },
  },
  // A ping says that there are payloads to fetch: equal bodies are distinct changes.
  deliveryId: { dedup: 'none' },
  event: { value: 'ping' },
  success: { status: 200, body: '' },
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'the MAC secret of the webhook (base64)',
  sources: [
    { url: 'code:x-airtable-content-mac', asOf: '2026-12-01', facts: ['signature'] },
    {
      url: 'https://airtable.com/developers/web/api/webhooks-overview',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event'],
    },
    {
      url: 'https://airtable.com/developers/web/api/webhooks-overview',
      asOf: '2026-12-01',
      facts: ['success'],
    },
  ],
  unconfirmed: ['retries: exponential'],
}))
