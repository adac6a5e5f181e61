import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Okta event hooks */
export const okta: Provider = /* @__PURE__ */ entry(() => ({
  name: 'okta',
  title: 'Okta event hooks',
  signature: { scheme: 'token', header: 'authorization' },
  deliveryId: { body: 'eventId' },
  event: { value: 'batch' },
  items: { list: 'data.events', id: { body: 'uuid' }, event: { body: 'eventType' } },
  handshakes: [
    {
      name: 'verification',
      method: 'GET',
      when: [{ header: 'x-okta-verification-challenge' }],
      answer: { json: { verification: { header: 'x-okta-verification-challenge' } } },
    },
  ],
  ackDeadlineMs: 3 * second,
  retriesByItself: true,
  retentionMs: day,
  stopStatuses: [400, 401, 403, 404, 405, 410, 413, 415, 422],
  secretIs: 'the authentication secret of the hook, as the header shows it',
  sources: [
    {
      url: 'https://developer.okta.com/docs/concepts/event-hooks/',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event', 'handshakes', 'ackDeadline', 'retries', 'stop'],
    },
  ],
}))
