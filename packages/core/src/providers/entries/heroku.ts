import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Heroku */
export const heroku: Provider = /* @__PURE__ */ entry(() => ({
  name: 'heroku',
  title: 'Heroku',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: 'heroku-webhook-hmac-sha256',
    encoding: 'base64',
    content: '{body}',
  },
  deliveryId: {
    anyOf: [{ body: 'webhook_metadata.event.id' }, { body: 'id' }, { digest: 'body' }],
  },
  event: {
    anyOf: [{ body: 'webhook_metadata.event.include' }, { body: 'resource' }, { value: 'event' }],
  },
  action: { body: 'action' },
  retriesByItself: true,
  retentionMs: 4 * day,
  secretIs: 'the secret of the subscription',
  sources: [
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/heroku.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://devcenter.heroku.com/changelog-items/1966',
      asOf: '2026-12-01',
      facts: ['retries'],
    },
  ],
  unconfirmed: ['deliveryId: webhook_metadata.event.id', 'event: webhook_metadata.event.include'],
}))
