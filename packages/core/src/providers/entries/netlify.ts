import { verifyJwt } from '../../jwt/verify-jwt.ts'
import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Netlify */
export const netlify: Provider = /* @__PURE__ */ entry(() => ({
  name: 'netlify',
  title: 'Netlify',
  signature: {
    scheme: 'jwt',
    header: 'x-webhook-signature',
    algorithms: ['HS256'],
    issuer: 'netlify',
    bodyHash: { claim: 'sha256', encoding: 'hex' },
    verify: verifyJwt,
  },
  deliveryId: { digest: 'body' },
  event: { anyOf: [{ header: 'x-netlify-event' }, { body: 'state' }, { value: 'deploy' }] },
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'the JWS secret token of the notification',
  sources: [
    {
      url: 'npm:nuxt-webhook-validators@0.2.12 dist/runtime/server/lib/validators/netlify.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    { url: 'code:x-netlify-event', asOf: '2026-12-01', facts: ['event'] },
  ],
  unconfirmed: ['deliveryId: none', 'retries'],
}))
