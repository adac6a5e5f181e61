import { entry } from '../define.ts'
import { braintreeCovers, verifyBraintree } from '../functions/braintree.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Braintree. The payload is a form; `bt_payload` holds XML in base64. */
export const braintree: Provider = /* @__PURE__ */ entry(() => ({
  name: 'braintree',
  title: 'Braintree',
  signature: { scheme: 'function', bodyIs: 'form', verify: verifyBraintree },
  deliveryId: { digest: 'body' },
  covers: braintreeCovers,
  event: { value: 'notification' },
  retriesByItself: true,
  retentionMs: 3 * day,
  secretIs: 'public key:private key of the gateway',
  sources: [
    {
      url: 'npm:braintree@3.40.0 lib/braintree/webhook_notification_gateway.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: ['deliveryId: none', 'event: the kind, in the XML', 'retries'],
}))
