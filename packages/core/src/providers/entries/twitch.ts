import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, minute } from './units.ts'

/** Twitch EventSub. A revocation is an event with the action `revocation`. */
export const twitch: Provider = /* @__PURE__ */ entry(() => ({
  name: 'twitch',
  title: 'Twitch EventSub',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'twitch-eventsub-message-signature',
    prefix: 'sha256=',
    encoding: 'hex',
    content: '{header:twitch-eventsub-message-id}{timestamp}{body}',
    timestamp: { header: 'twitch-eventsub-message-timestamp', unit: 'iso', pastMs: 10 * minute },
  },
  deliveryId: { header: 'twitch-eventsub-message-id' },
  event: {
    anyOf: [
      { header: 'twitch-eventsub-subscription-type' },
      { body: 'subscription.type' },
      { header: 'twitch-eventsub-message-type' },
    ],
  },
  action: { header: 'twitch-eventsub-message-type' },
  handshakes: [
    {
      name: 'callback_verification',
      when: [{ header: 'twitch-eventsub-message-type', equals: 'webhook_callback_verification' }],
      answer: { text: { body: 'challenge' } },
    },
  ],
  retriesByItself: true,
  retentionMs: day,
  retryNumber: { header: 'twitch-eventsub-message-retry' },
  secretIs: 'the secret of the subscription',
  sources: [
    {
      url: 'npm:@twurple/eventsub-http@8.1.4 lib/EventSubHttpBase.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://dev.twitch.tv/docs/eventsub/handling-webhook-events/',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'handshakes', 'retries'],
    },
  ],
}))
