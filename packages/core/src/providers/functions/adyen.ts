/** Adyen's payment webhooks carry a signature in every item, over eight of its fields. */
import { backend } from '#crypto'
import { toBase64, utf8 } from '../../crypto/bytes.ts'
import { equalText, readPath } from '../fields.ts'
import type { SignatureInput, VerifyCode } from '../provider.ts'
import { jsonOf } from './json-body.ts'

const signedFields = [
  'pspReference',
  'originalReference',
  'merchantAccountCode',
  'merchantReference',
  'amount.value',
  'amount.currency',
  'eventCode',
  'success',
]

const signatureField = 'additionalData.hmacSignature'

/** What is signed of an item. */
export function adyenContent(item: unknown): string {
  return signedFields
    .map((field) => readPath(item, field))
    .map((value) => (value === undefined || value === null ? '' : String(value)))
    .join(':')
}

/** Every item has to prove itself: one that does not refuses the request. */
export async function verifyAdyenItems({
  request,
  secret,
}: SignatureInput): Promise<'valid' | VerifyCode> {
  const items = readPath(jsonOf(request.body), 'notificationItems')
  if (!Array.isArray(items) || items.length === 0 || secret === undefined)
    return 'signature_missing'
  const key = await backend.importHmacKey('SHA-256', secret.bytes)
  let areProved = true
  for (const element of items) {
    const item = readPath(element, 'NotificationRequestItem')
    const given = readPath(item, signatureField)
    if (typeof given !== 'string') return 'signature_missing'
    const expected = toBase64(await backend.hmac('SHA-256', key, utf8(adyenContent(item))))
    if (!equalText(given, expected)) areProved = false
  }
  return areProved ? 'valid' : 'signature_mismatch'
}
