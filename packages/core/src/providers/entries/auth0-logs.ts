import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, mebibyte } from './units.ts'

/** Auth0 log streams */
export const auth0Logs: Provider = /* @__PURE__ */ entry(() => ({
  name: 'auth0-logs',
  title: 'Auth0 log streams',
  signature: { scheme: 'token', header: 'authorization' },
  deliveryId: { digest: 'body' },
  event: { value: 'batch' },
  items: { list: '', id: { body: 'log_id' }, event: { body: 'data.type' } },
  maxBodyBytes: 4 * mebibyte,
  jsonLines: true,
  retriesByItself: true,
  retentionMs: 30 * day,
  secretIs: 'the authorization token of the stream, as the header shows it',
  sources: [
    {
      url: 'https://auth0.com/docs/customize/log-streams/custom-log-streams',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://auth0.com/docs/logs/streams',
      asOf: '2026-12-01',
      facts: ['retries', 'redelivery'],
    },
  ],
  unconfirmed: ['maxBody: ours, for a list'],
}))
