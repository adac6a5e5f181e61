import { entry } from '../define.ts'
import { verifyPusher } from '../functions/pusher.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Pusher Channels */
export const pusher: Provider = /* @__PURE__ */ entry(() => ({
  name: 'pusher',
  title: 'Pusher Channels',
  signature: { scheme: 'function', header: 'x-pusher-signature', verify: verifyPusher },
  deliveryId: { digest: 'body' },
  event: { anyOf: [{ body: 'events.0.name' }, { value: 'batch' }] },
  ackDeadlineMs: 4 * second,
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'key:secret of the app',
  sources: [
    { url: 'npm:pusher@5.3.4 lib/webhook.js', asOf: '2026-12-01', facts: ['signature', 'event'] },
    {
      url: 'https://docs.bird.com/pusher/channels/channels/webhooks/channels-webhook-timeouts-and-retries',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries'],
    },
  ],
  unconfirmed: ['deliveryId: none'],
}))
