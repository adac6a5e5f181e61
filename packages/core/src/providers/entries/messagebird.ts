import { jwtId } from '../../jwt/claims.ts'
import { verifyJwt } from '../../jwt/verify-jwt.ts'
import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, second } from './units.ts'

/** MessageBird: a token that holds hashes of the address and the body. Its id is the delivery id. */
export const messagebird: Provider = /* @__PURE__ */ entry(() => ({
  name: 'messagebird',
  title: 'MessageBird',
  signature: {
    scheme: 'jwt',
    header: 'messagebird-signature-jwt',
    algorithms: ['HS256', 'HS384', 'HS512'],
    issuer: 'MessageBird',
    bodyHash: { claim: 'payload_hash', encoding: 'hex', optional: true },
    urlHash: 'url_hash',
    requiredClaims: ['jti'],
    skewMs: 5 * second,
    verify: verifyJwt,
  },
  deliveryId: jwtId,
  event: { anyOf: [{ body: 'type' }, { body: 'event' }, { value: 'message' }] },
  retriesByItself: true,
  retentionMs: day,
  secretIs: 'the signing key of the account',
  sources: [
    {
      url: 'npm:messagebird@4.0.1 lib/webhook-signature-jwt.js',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
  ],
  unconfirmed: ['event', 'retries'],
}))
