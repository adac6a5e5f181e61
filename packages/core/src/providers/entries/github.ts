import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, mebibyte, second } from './units.ts'

/** GitHub repository, organisation and app webhooks. */
export const github: Provider = /* @__PURE__ */ entry(() => ({
  name: 'github',
  title: 'GitHub',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-hub-signature-256',
    prefix: 'sha256=',
    encoding: 'hex',
    content: '{body}',
  },
  deliveryId: { header: 'x-github-delivery' },
  event: { header: 'x-github-event' },
  action: { body: 'action' },
  // One event has the same delivery id on every hook subscribed to it: the id alone would drop the second copy.
  endpoint: { header: 'x-github-hook-id', pattern: /^[0-9]{1,20}$/ },
  formField: 'payload',
  pingEvents: ['ping'],
  maxBodyBytes: 25 * mebibyte,
  ackDeadlineMs: 10 * second,
  retriesByItself: false,
  // Its own log keeps three days for a manual redelivery; a week leaves room for scripts that ask later.
  retentionMs: 7 * day,
  sources: [
    {
      url: 'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://docs.github.com/en/webhooks/webhook-events-and-payloads',
      asOf: '2026-12-01',
      facts: ['deliveryId', 'event', 'maxBody'],
    },
    {
      url: 'https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks',
      asOf: '2026-12-01',
      facts: ['redelivery'],
    },
    {
      url: 'https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries',
      asOf: '2026-12-01',
      facts: ['retries'],
    },
    {
      url: 'https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks',
      asOf: '2026-12-01',
      facts: ['ackDeadline'],
    },
  ],
}))
