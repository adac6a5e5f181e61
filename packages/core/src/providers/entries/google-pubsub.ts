import { verifyJwt } from '../../jwt/verify-jwt.ts'
import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day, mebibyte, minute, second } from './units.ts'

/** Google Pub/Sub push. Its token covers no byte of the body. Anybody's service account gets tokens for any audience: name the one that is yours. */
export const googlePubsub: Provider = /* @__PURE__ */ entry(() => ({
  name: 'google-pubsub',
  title: 'Google Cloud Pub/Sub push',
  signature: {
    scheme: 'jwt',
    header: 'authorization',
    prefix: 'Bearer ',
    algorithms: ['RS256'],
    issuer: ['https://accounts.google.com', 'accounts.google.com'],
    secretHolds: 'audience email',
    requiredClaims: ['exp', 'iat'],
    skewMs: 5 * minute,
    keysUrl: 'https://www.googleapis.com/oauth2/v3/certs',
    verify: verifyJwt,
  },
  deliveryId: { body: 'message.messageId' },
  event: {
    anyOf: [
      { body: 'message.attributes.eventType' },
      { body: 'message.attributes.event' },
      { value: 'message' },
    ],
  },
  maxBodyBytes: 16 * mebibyte,
  ackDeadlineMs: 10 * second,
  retriesByItself: true,
  retentionMs: 8 * day,
  retryNumber: { body: 'deliveryAttempt' },
  secretIs: 'the audience of the subscription, and after a blank the service account that signs',
  sources: [
    {
      url: 'npm:google-auth-library@10.9.1 build/src/auth/oauth2client.js',
      asOf: '2026-12-01',
      facts: ['signature'],
    },
    {
      url: 'https://cloud.google.com/pubsub/docs/authenticate-push-subscriptions',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId'],
    },
    {
      url: 'https://cloud.google.com/python/docs/reference/pubsub/1.3.1/google.cloud.pubsub_v1.types.Subscription',
      asOf: '2026-12-01',
      facts: ['ackDeadline', 'retries'],
    },
  ],
  unconfirmed: ['event: the attributes are yours', 'maxBody: 10 MB, and a third more in base64'],
}))
