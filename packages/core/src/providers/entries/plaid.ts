import { verifyJwt } from '../../jwt/verify-jwt.ts'
import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, minute, second } from './units.ts'

/** Plaid */
export const plaid: Provider = /* @__PURE__ */ entry(() => ({
  name: 'plaid',
  title: 'Plaid',
  signature: {
    scheme: 'jwt',
    header: 'plaid-verification',
    algorithms: ['ES256'],
    bodyHash: { claim: 'request_body_sha256', encoding: 'hex' },
    maxAgeMs: 5 * minute,
    keyless: true,
    verify: verifyJwt,
  },
  // 'There is something new for this item' is the same text each time.
  deliveryId: { dedup: 'none' },
  event: { join: [{ body: 'webhook_type' }, { body: 'webhook_code' }], separator: '.' },
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs:
    'a JWK as JSON text; or leave it out, and pass keys: ({ kid }) => the key of /webhook_verification_key/get',
  sources: [
    {
      url: 'https://plaid.com/docs/api/webhooks/webhook-verification/',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://docs.rs/plaid/latest/plaid/model/struct.SyncUpdatesAvailableWebhook.html',
      asOf: '2026-12-01',
      facts: ['deliveryId'],
    },
    { url: 'npm:plaid@47.0.0 dist/api.js', asOf: '2026-12-01', facts: ['event'] },
    {
      url: 'https://support.plaid.com/hc/en-us/articles/40390675922967-Can-Plaid-re-push-failed-or-missed-webhook-events',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries'],
    },
  ],
}))
