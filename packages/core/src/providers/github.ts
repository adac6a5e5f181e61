import type { Provider } from './provider.ts'

const day = 86_400_000

/**
 * GitHub repository, organisation and app webhooks.
 * @see https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries (read 2026-12-01)
 */
export const github: Provider = Object.freeze({
  name: 'github',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'x-hub-signature-256',
    prefix: 'sha256=',
    encoding: 'hex',
    content: 'body',
    secretEncoding: 'utf8',
  },
  deliveryId: { header: 'x-github-delivery' },
  event: { header: 'x-github-event' },
  action: { body: 'action' },
  // One event has the same delivery id on every hook subscribed to it: the id alone would drop the second copy.
  endpoint: { header: 'x-github-hook-id', pattern: /^[0-9]{1,20}$/ },
  formField: 'payload',
  pingEvents: ['ping'],
  maxBodyBytes: 25 * 1024 * 1024,
  ackDeadlineMs: 10_000,
  retriesByItself: false,
  // Its own log keeps three days for a manual redelivery; a week leaves room for scripts that ask later.
  retentionMs: 7 * day,
  sources: [
    {
      url: 'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
      readAt: '2026-12-01',
    },
    {
      url: 'https://docs.github.com/en/webhooks/webhook-events-and-payloads',
      readAt: '2026-12-01',
    },
    {
      url: 'https://docs.github.com/en/webhooks/testing-and-troubleshooting-webhooks/redelivering-webhooks',
      readAt: '2026-12-01',
    },
  ],
} as const)
