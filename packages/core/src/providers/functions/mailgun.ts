/**
 * Mailgun signs a time and a token, both in the body: nothing else of it is covered, so whoever has seen one request can
 * make others.
 */
import { backend } from '#crypto'
import { toHex, utf8 } from '../../crypto/bytes.ts'
import { equalText, readPath } from '../fields.ts'
import type { SignatureInput, VerifyCode } from '../provider.ts'
import { checkTimestamp } from '../timestamp.ts'
import { jsonOf } from './json-body.ts'

// As long as Mailgun itself repeats a request: eight hours, and some.
const tolerance = { unit: 's', pastMs: 9 * 3_600_000, futureMs: 300_000 } as const

export async function verifyMailgun({
  request,
  secret,
  toleranceMs,
}: SignatureInput): Promise<'valid' | VerifyCode> {
  const body = jsonOf(request.body)
  const [time, token, given] = ['timestamp', 'token', 'signature'].map((name) =>
    readPath(body, `signature.${name}`),
  )
  if (typeof given !== 'string' || typeof token !== 'string' || secret === undefined)
    return 'signature_missing'
  if (typeof time !== 'string' && typeof time !== 'number') return 'timestamp_missing'
  const key = await backend.importHmacKey('SHA-256', secret.bytes)
  const expected = toHex(await backend.hmac('SHA-256', key, utf8(`${time}${token}`)))
  if (!equalText(given, expected)) return 'signature_mismatch'
  return checkTimestamp(tolerance, String(time), { nowMs: request.nowMs, toleranceMs }) ?? 'valid'
}
