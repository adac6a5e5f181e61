/** PayPal signs ids, a time and a checksum of the body with a certificate of its own. */
import { backend } from '#crypto'
import { fromBase64, utf8 } from '../../crypto/bytes.ts'
import { crc32 } from '../../crypto/crc32.ts'
import type { SignatureInput, SignedRequest, VerifyCode } from '../provider.ts'
import { checkTimestamp } from '../timestamp.ts'
import { certificateKey } from './public-keys.ts'

/** What is signed; the webhook's id stands in no header, so a message of another webhook does not match. */
export function paypalContent({ headers, body }: SignedRequest, webhookId: string): string {
  const id = headers['paypal-transmission-id'] ?? ''
  const time = headers['paypal-transmission-time'] ?? ''
  return `${id}|${time}|${webhookId}|${crc32(body)}`
}

export async function verifyPaypal({
  request,
  secret,
  keys,
  toleranceMs,
}: SignatureInput): Promise<'valid' | VerifyCode> {
  const { headers, nowMs } = request
  const signature = fromBase64(headers['paypal-transmission-sig'] ?? '')
  const certificateUrl = headers['paypal-cert-url']
  if (signature === undefined || signature.length === 0 || certificateUrl === undefined)
    return 'signature_missing'
  if (headers['paypal-auth-algo'] !== 'SHA256withRSA') return 'signature_mismatch'
  if (secret === undefined || !isOwnAddress(certificateUrl)) return 'signature_mismatch'
  const key = await certificateKey(certificateUrl, 'rsa-sha256', keys)
  if (key === undefined) return 'key_unavailable'
  const content = utf8(paypalContent(request, secret.text))
  if (!(await backend.verify('rsa-sha256', key, signature, content))) return 'signature_mismatch'
  const time = headers['paypal-transmission-time']
  return checkTimestamp({ unit: 'iso' }, time, { nowMs, toleranceMs }) ?? 'valid'
}

function isOwnAddress(url: string): boolean {
  return /^https:\/\/([a-z0-9-]+\.)+paypal\.com\/[\w./-]+$/i.test(url)
}
