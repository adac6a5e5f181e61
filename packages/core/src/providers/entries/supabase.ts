import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Supabase database webhooks, which sign nothing: a bearer token of your own. */
export const supabase: Provider = /* @__PURE__ */ entry(() => ({
  name: 'supabase',
  title: 'Supabase database webhooks',
  signature: { scheme: 'token', header: 'authorization', prefix: 'Bearer ' },
  // A row that is changed there and back says the same again, and nothing is sent twice.
  deliveryId: { dedup: 'none' },
  event: {
    anyOf: [{ join: [{ body: 'table' }, { body: 'type' }], separator: '.' }, { value: 'event' }],
  },
  retriesByItself: false,
  retentionMs: day,
  secretIs: 'the bearer token that you have set as a header',
  sources: [
    {
      url: 'npm:@trigger.dev/core@4.8.3 dist/esm/v3/webhooks/index.js',
      asOf: '2026-12-01',
      facts: ['signature', 'event'],
    },
  ],
  unconfirmed: ['deliveryId: none', 'retries: none known'],
}))
