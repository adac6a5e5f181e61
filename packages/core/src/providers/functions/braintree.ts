/** Braintree posts a form: the payload, and pairs of public key and signature. */
import { backend } from '#crypto'
import { toHex, utf8 } from '../../crypto/bytes.ts'
import { equalText, readField } from '../fields.ts'
import type { ReadableRequest, SignatureInput, VerifyCode } from '../provider.ts'

/** `public key:private key`, or the private key alone: then any pair may match. */
export async function verifyBraintree({
  request,
  secret,
}: SignatureInput): Promise<'valid' | VerifyCode> {
  const form = new URLSearchParams(
    new TextDecoder('utf-8', { ignoreBOM: true }).decode(request.body),
  )
  const [signatures, payload, another] = ['bt_signature', 'bt_payload'].flatMap((name) =>
    form.getAll(name),
  )
  if (signatures === undefined || payload === undefined || secret === undefined)
    return 'signature_missing'
  // A field that stands there twice would be verified once and handed on twice.
  if (another !== undefined) return 'signature_mismatch'
  if (/[^A-Za-z0-9+=/\n]/.test(payload)) return 'signature_mismatch'
  const { publicKey, privateKey } = braintreeKeys(secret.text)
  const expected = await Promise.all(
    [payload, `${payload}\n`].map((text) => signBraintree(privateKey, text)),
  )
  let isProved = false
  for (const pair of signatures.split('&').slice(0, 20)) {
    const at = pair.indexOf('|')
    if (at === -1 || (publicKey !== undefined && pair.slice(0, at) !== publicKey)) continue
    for (const one of expected) if (equalText(pair.slice(at + 1), one)) isProved = true
  }
  return isProved ? 'valid' : 'signature_mismatch'
}

/** The payload, which may have been signed with a line break at its end that is not sent. */
export function braintreeCovers({ payload }: ReadableRequest): string | undefined {
  return readField({ body: 'bt_payload' }, { headers: {}, url: '', payload })?.replace(/\n$/, '')
}

export function braintreeKeys(secret: string): {
  readonly publicKey: string | undefined
  readonly privateKey: string
} {
  const at = secret.indexOf(':')
  return at === -1
    ? { publicKey: undefined, privateKey: secret }
    : { publicKey: secret.slice(0, at), privateKey: secret.slice(at + 1) }
}

/** The hex signature of a payload. */
export async function signBraintree(privateKey: string, payload: string): Promise<string> {
  const key = await backend.importHmacKey('SHA-1', await backend.digest('SHA-1', utf8(privateKey)))
  return toHex(await backend.hmac('SHA-1', key, utf8(payload)))
}
