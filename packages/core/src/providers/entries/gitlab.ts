import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { standardV1 } from './standard-signatures.ts'
import { day, mebibyte, second } from './units.ts'

/** GitLab, by its signing token or the older secret token, which covers no byte of the body. */
export const gitlab: Provider = /* @__PURE__ */ entry(() => ({
  name: 'gitlab',
  title: 'GitLab',
  signature: [
    standardV1('webhook', { encoding: 'base64', prefix: 'whsec_', withoutPrefix: 'refuse' }),
    { scheme: 'token', header: 'x-gitlab-token' },
  ],
  deliveryId: {
    anyOf: [
      { header: 'idempotency-key' },
      { header: 'webhook-id' },
      // Before 17.4 there is no more than this, and webhooks that set off each other share it.
      { join: [{ header: 'x-gitlab-event-uuid' }, { digest: 'body' }] },
    ],
  },
  event: {
    anyOf: [
      { body: 'object_kind' },
      { body: 'event_name' },
      { body: 'event_type' },
      { value: 'event' },
    ],
  },
  maxBodyBytes: 25 * mebibyte,
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: 7 * day,
  secretIs: 'the signing token (whsec_…) or the secret token of the webhook',
  sources: [
    {
      url: 'https://docs.gitlab.com/user/project/integrations/webhooks/',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'redelivery'],
    },
    {
      url: 'https://gitlab.com/gitlab-org/gitlab/-/issues/356867',
      asOf: '2026-12-01',
      facts: ['ackDeadline'],
    },
    { url: 'npm:standardwebhooks@1.1.1 dist/index.js', asOf: '2026-12-01', facts: ['signature'] },
    {
      url: 'https://docs.gitlab.com/administration/instance_limits/',
      asOf: '2026-12-01',
      facts: ['maxBody'],
    },
  ],
  unconfirmed: [
    'retries: on failure, with the same key',
    'stop: four consecutive failures pause a webhook, forty end it',
  ],
}))
