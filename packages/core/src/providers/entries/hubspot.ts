import { entry } from '../define.ts'
import { hubspotContent } from '../functions/hubspot.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** HubSpot: lists of events, signed by its third scheme; the first two are taken where the third is not sent. */
export const hubspot: Provider = /* @__PURE__ */ entry(() => ({
  name: 'hubspot',
  title: 'HubSpot',
  signature: [
    {
      scheme: 'hmac',
      hash: 'SHA-256',
      header: 'x-hubspot-signature-v3',
      encoding: 'base64',
      content: hubspotContent,
      bodyIs: 'json',
      signsUrl: true,
      timestamp: { header: 'x-hubspot-request-timestamp', unit: 'ms', pastMs: 300 * second },
    },
    {
      scheme: 'digest',
      hash: 'SHA-256',
      header: 'x-hubspot-signature',
      encoding: 'hex',
      content: '{secret}{method}{url}{body}',
      when: [
        { header: 'x-hubspot-signature-v3', absent: true },
        { header: 'x-hubspot-signature-version', equals: 'v2' },
      ],
    },
    {
      scheme: 'digest',
      hash: 'SHA-256',
      header: 'x-hubspot-signature',
      encoding: 'hex',
      content: '{secret}{body}',
      when: [
        { header: 'x-hubspot-signature-v3', absent: true },
        { header: 'x-hubspot-signature-version', equals: 'v1' },
      ],
    },
  ],
  deliveryId: { digest: 'body' },
  event: { value: 'batch' },
  items: {
    list: '',
    id: {
      join: [
        { body: 'portalId' },
        { body: 'subscriptionId' },
        { body: 'eventId' },
        { body: 'occurredAt' },
      ],
    },
    event: { body: 'subscriptionType' },
    attempt: 'attemptNumber',
  },
  ackDeadlineMs: 5 * second,
  retriesByItself: true,
  retentionMs: 3 * day,
  secretIs: "the app's client secret",
  sources: [
    {
      url: 'npm:@hubspot/api-client@13.5.0 lib/src/services/webhooks/signature.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://developers.hubspot.com/docs/api-reference/error-handling',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries'],
    },
  ],
  unconfirmed: [
    'signature: which characters of the address are decoded',
    'deliveryId: eventId, subscriptionId, portalId and occurredAt of each item',
    'event: subscriptionType',
  ],
}))
