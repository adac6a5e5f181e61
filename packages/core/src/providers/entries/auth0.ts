import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Auth0 event streams. A 4xx is not sent again, so a wrong token is answered 503. */
export const auth0: Provider = /* @__PURE__ */ entry(() => ({
  name: 'auth0',
  title: 'Auth0 event streams',
  signature: { scheme: 'token', header: 'authorization', prefix: 'Bearer ' },
  deliveryId: { body: 'id' },
  event: { body: 'type' },
  retriesByItself: true,
  retentionMs: 7 * day,
  stopStatuses: [400, 401, 403, 404, 405, 410, 413, 415, 422],
  secretIs: 'the bearer token of the stream',
  sources: [
    {
      url: 'https://auth0.com/docs/customize/events/create-an-event-stream',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://auth0.com/docs/customize/events/events-best-practices',
      asOf: '2026-12-01',
      facts: ['retries', 'redelivery', 'stop'],
    },
  ],
}))
