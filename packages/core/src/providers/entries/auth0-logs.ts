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
  retriesByItself: true,
  retentionMs: 7 * day,
  secretIs: 'the authorization token of the stream, as the header shows it',
  sources: [
    {
      url: 'https://auth0.com/docs/customize/log-streams/custom-log-streams',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
  ],
  unconfirmed: ['retries', 'maxBody: ours, for a list'],
}))
