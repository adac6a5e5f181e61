import { entry } from '../define.ts'
import { coinbaseCdpContent } from '../functions/coinbase-cdp.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Coinbase Developer Platform */
export const coinbaseCdp: Provider = /* @__PURE__ */ entry(() => ({
  name: 'coinbase-cdp',
  title: 'Coinbase Developer Platform',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-hook0-signature',
    separator: ',',
    prefix: 'v1=',
    encoding: 'hex',
    content: coinbaseCdpContent,
    bodyIs: 'json',
    timestamp: {
      header: 'x-hook0-signature',
      separator: ',',
      prefix: 't=',
      unit: 's',
      pastMs: 300 * second,
    },
  },
  deliveryId: { anyOf: [{ body: 'id' }, { body: 'eventId' }, { digest: 'body' }] },
  event: {
    anyOf: [{ body: 'eventType' }, { body: 'event_type' }, { body: 'type' }, { value: 'event' }],
  },
  retriesByItself: true,
  retentionMs: 4 * day,
  secretIs: 'the secret of the subscription',
  sources: [
    {
      url: 'https://docs.cdp.coinbase.com/webhooks/verify-signatures',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: ['deliveryId: id or eventId', 'event: eventType', 'retries'],
}))
