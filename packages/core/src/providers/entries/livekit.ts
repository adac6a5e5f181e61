import { verifyJwt } from '../../jwt/verify-jwt.ts'
import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** LiveKit */
export const livekit: Provider = /* @__PURE__ */ entry(() => ({
  name: 'livekit',
  title: 'LiveKit',
  signature: {
    scheme: 'jwt',
    header: 'authorization',
    algorithms: ['HS256'],
    secretHolds: 'issuer:key',
    bodyHash: { claim: 'sha256', encoding: 'base64' },
    skewMs: 10 * second,
    verify: verifyJwt,
  },
  deliveryId: { body: 'id' },
  event: { body: 'event' },
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'API key:API secret',
  sources: [
    {
      url: 'npm:livekit-server-sdk@2.19.2 dist/WebhookReceiver.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
  ],
  unconfirmed: ['retries'],
}))
