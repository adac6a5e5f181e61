import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Discord interactions and webhook events. It sends wrong signatures on purpose, and removes an address that does not answer them 401. */
export const discord: Provider = /* @__PURE__ */ entry(() => ({
  name: 'discord',
  title: 'Discord',
  signature: {
    scheme: 'ed25519',
    header: 'x-signature-ed25519',
    encoding: 'hex',
    content: '{timestamp}{body}',
    timestamp: { header: 'x-signature-timestamp', unit: 's' },
    secret: { encoding: 'hex' },
  },
  // Interactions have an id; webhook events have none.
  deliveryId: { anyOf: [{ body: 'id' }, { digest: 'body' }] },
  event: { anyOf: [{ body: 'event.type' }, { body: 'type' }] },
  handshakes: [
    {
      name: 'interaction_ping',
      when: [
        { body: 'type', equals: 1 },
        { body: 'event', absent: true },
      ],
      answer: { json: { type: { value: 1 } } },
    },
    {
      name: 'webhook_ping',
      when: [{ body: 'type', equals: 0 }],
      answer: { status: 204, headers: { 'content-type': { value: 'application/json' } } },
    },
  ],
  ackDeadlineMs: 3 * second,
  retriesByItself: true,
  retentionMs: day,
  success: { status: 204, when: [{ body: 'event' }] },
  secretIs: "the application's public key (64 hex digits)",
  sources: [
    {
      url: 'npm:discord-interactions@4.4.0 dist/index.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://docs.discord.com/developers/events/webhook-events',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'handshakes', 'ackDeadline', 'retries', 'success'],
    },
    {
      url: 'https://docs.discord.com/developers/interactions/receiving-and-responding',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'handshakes', 'ackDeadline'],
    },
  ],
}))
