import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** Azure Event Grid, in its own schema and as CloudEvents. It signs nothing: a token in the address is what tells it from others. */
export const eventGrid: Provider = /* @__PURE__ */ entry(() => ({
  name: 'event-grid',
  title: 'Azure Event Grid',
  signature: [
    { scheme: 'token', header: 'authorization' },
    { scheme: 'token', header: 'aeg-sas-key' },
    { scheme: 'token', query: 'token' },
  ],
  deliveryId: {
    anyOf: [{ join: [{ body: 'source' }, { body: 'id' }], separator: '#' }, { digest: 'body' }],
  },
  event: { anyOf: [{ body: 'type' }, { value: 'batch' }] },
  items: {
    list: '',
    id: {
      anyOf: [
        { join: [{ body: 'source' }, { body: 'id' }], separator: '#' },
        { join: [{ body: 'topic' }, { body: 'id' }], separator: '#' },
        { body: 'id' },
      ],
    },
    event: { anyOf: [{ body: 'eventType' }, { body: 'type' }] },
  },
  handshakes: [
    {
      name: 'subscription_validation',
      when: [{ header: 'aeg-event-type', equals: 'SubscriptionValidation' }],
      answer: { json: { validationResponse: { body: '0.data.validationCode' } } },
    },
    {
      name: 'options',
      method: 'OPTIONS',
      when: [{ header: 'webhook-request-origin' }],
      answer: { headers: { 'webhook-allowed-origin': { header: 'webhook-request-origin' } } },
    },
  ],
  ackDeadlineMs: 30 * second,
  retriesByItself: true,
  retentionMs: 2 * day,
  retryNumber: { header: 'aeg-delivery-count' },
  stopStatuses: [400, 401, 403, 404, 413],
  secretIs: 'the value of ?token= in the address of the subscription',
  sources: [
    {
      url: 'https://learn.microsoft.com/en-us/azure/event-grid/webhook-event-delivery',
      asOf: '2026-12-01',
      facts: ['signature', 'handshakes', 'deliveryId', 'event'],
    },
    {
      url: 'https://learn.microsoft.com/en-us/azure/event-grid/delivery-and-retry',
      asOf: '2026-12-01',
      facts: ['retries', 'stop'],
    },
    { url: 'code:aeg-delivery-count', asOf: '2026-12-01', facts: ['retries'] },
    {
      url: 'https://learn.microsoft.com/azure/event-grid/delivery-and-retry',
      asOf: '2026-12-01',
      facts: ['ackDeadline'],
    },
  ],
  unconfirmed: ['maxBody: 1 MB'],
}))
