/** Pusher names the key whose secret has signed. */
import { backend } from '#crypto'
import { toHex, utf8 } from '../../crypto/bytes.ts'
import { equalText } from '../fields.ts'
import type { SignatureInput, VerifyCode } from '../provider.ts'

/** `key:secret`, or the secret alone: then the key that the request names is not compared. */
export async function verifyPusher({
  request,
  secret,
}: SignatureInput): Promise<'valid' | VerifyCode> {
  const given = request.headers['x-pusher-signature']
  if (given === undefined || secret === undefined) return 'signature_missing'
  const at = secret.text.indexOf(':')
  const named = at === -1 ? undefined : secret.text.slice(0, at)
  const key = await backend.importHmacKey('SHA-256', utf8(secret.text.slice(at + 1)))
  const expected = toHex(await backend.hmac('SHA-256', key, request.body))
  const isProved = equalText(given, expected)
  const isNamed = named === undefined || request.headers['x-pusher-key'] === named
  return isProved && isNamed ? 'valid' : 'signature_mismatch'
}
