import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Asana. A heartbeat has no events, and is answered without the handler. */
export const asana: Provider = /* @__PURE__ */ entry(() => ({
  name: 'asana',
  title: 'Asana',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-hook-signature',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { value: 'batch' },
  items: {
    list: 'events',
    id: { digest: 'body' },
    event: { join: [{ body: 'resource.resource_type' }, { body: 'action' }], separator: '.' },
  },
  handshakes: [
    // The secret comes this way: `onHandshake` hears it, and has to keep it.
    {
      name: 'hook_secret',
      signed: false,
      when: [{ header: 'x-hook-secret' }],
      answer: { headers: { 'x-hook-secret': { header: 'x-hook-secret' } } },
    },
  ],
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: 'the X-Hook-Secret of the handshake',
  sources: [
    {
      url: 'https://developers.asana.com/docs/webhooks-guide',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'handshakes', 'ackDeadline', 'retries'],
    },
  ],
  unconfirmed: ['stop: 410 ends a webhook'],
}))
