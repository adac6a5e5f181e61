import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, mebibyte } from './units.ts'

/** DocuSign Connect */
export const docusign: Provider = /* @__PURE__ */ entry(() => ({
  name: 'docusign',
  title: 'DocuSign Connect',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: Array.from({ length: 100 }, (_, index) => `x-docusign-signature-${index + 1}`),
    encoding: 'base64',
    content: '{body}',
  },
  deliveryId: {
    anyOf: [
      { join: [{ body: 'event' }, { body: 'data.envelopeId' }, { body: 'generatedDateTime' }] },
      { digest: 'body' },
    ],
  },
  event: { anyOf: [{ body: 'event' }, { value: 'envelope' }] },
  maxBodyBytes: 25 * mebibyte,
  retriesByItself: true,
  retentionMs: 16 * day,
  retryNumber: { body: 'retryCount' },
  secretIs: 'a Connect HMAC key',
  sources: [
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/docusign.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
  ],
  unconfirmed: [
    'deliveryId: event, envelope and time',
    'event: event',
    'ackDeadline: 100 s',
    'retries: 24 hours to 15 days by the mode',
    'redelivery: republish',
    'maxBody: ours, for documents in the message',
  ],
}))
