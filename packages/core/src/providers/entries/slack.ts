import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Slack events, interactivity and slash commands. */
export const slack: Provider = /* @__PURE__ */ entry(() => ({
  name: 'slack',
  title: 'Slack',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-slack-signature',
    prefix: 'v0=',
    encoding: 'hex',
    content: 'v0:{timestamp}:{body}',
    timestamp: { header: 'x-slack-request-timestamp', unit: 's', pastMs: 300 * second },
  },
  // Events have an id; interactions and commands a trigger; what has neither is known by its bytes.
  deliveryId: { anyOf: [{ body: 'event_id' }, { body: 'trigger_id' }, { digest: 'body' }] },
  event: { anyOf: [{ body: 'event.type' }, { body: 'command' }, { body: 'type' }] },
  formField: 'payload',
  formFields: true,
  handshakes: [
    {
      name: 'url_verification',
      when: [{ body: 'type', equals: 'url_verification' }],
      answer: { json: { challenge: { body: 'challenge' } } },
    },
    // Unsigned: answered, and nothing else in it is looked at.
    {
      name: 'ssl_check',
      signed: false,
      when: [{ body: 'ssl_check', equals: 1 }],
      answer: { text: { value: '' } },
    },
  ],
  // What a command is answered with is shown to whoever typed it.
  success: {
    status: 200,
    body: '',
    when: [{ header: 'content-type', includes: 'application/x-www-form-urlencoded' }],
  },
  ackDeadlineMs: 3 * second,
  retriesByItself: true,
  retentionMs: 2 * day,
  retryNumber: { header: 'x-slack-retry-num' },
  retryReason: { header: 'x-slack-retry-reason' },
  stopHeader: ['x-slack-no-retry', '1'],
  secretIs: 'the signing secret of the app',
  sources: [
    {
      url: 'npm:@slack/bolt@5.1.0 dist/receivers/verify-request.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'npm:@slack/bolt@5.1.0 dist/receivers/HTTPModuleFunctions.js',
      asOf: '2026-12-01',
      facts: ['success'],
    },
    {
      url: 'https://docs.slack.dev/apis/events-api',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'handshakes', 'ackDeadline', 'retries', 'stop'],
    },
    {
      url: 'https://docs.slack.dev/interactivity/implementing-slash-commands',
      asOf: '2026-12-01',
      facts: ['handshakes'],
    },
    {
      url: 'https://docs.slack.dev/apis/events-api',
      asOf: '2026-12-01',
      facts: ['redelivery'],
    },
  ],
}))
