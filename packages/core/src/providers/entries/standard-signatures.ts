/** The schemes of Standard Webhooks, for the many senders that use them. */
import type { HmacSignature, PublicKeySignature, SecretFormat } from '../provider.ts'

const toleranceMs = 300_000

/** `v1` over `webhook-*` or `svix-*` headers: HMAC-SHA256 in base64. */
export function standardV1(
  family: 'webhook' | 'svix',
  secret: SecretFormat = { encoding: 'base64', prefix: 'whsec_' },
): HmacSignature {
  return {
    scheme: 'hmac',
    hash: 'SHA-256',
    header: `${family}-signature`,
    separator: ' ',
    prefix: 'v1,',
    encoding: 'base64',
    content: `{header:${family}-id}.{timestamp}.{body}`,
    timestamp: { header: `${family}-timestamp`, unit: 's', pastMs: toleranceMs },
    secret,
    deliveryId: { header: `${family}-id` },
  }
}

/** `v1a`: Ed25519. The secret is the sender's public key, `whpk_…`. */
export function standardV1a(family: 'webhook' | 'svix'): PublicKeySignature {
  return {
    scheme: 'ed25519',
    header: `${family}-signature`,
    separator: ' ',
    prefix: 'v1a,',
    encoding: 'base64',
    content: `{header:${family}-id}.{timestamp}.{body}`,
    timestamp: { header: `${family}-timestamp`, unit: 's', pastMs: toleranceMs },
    secret: { encoding: 'base64', prefix: 'whpk_', withoutPrefix: 'refuse' },
    deliveryId: { header: `${family}-id` },
  }
}
