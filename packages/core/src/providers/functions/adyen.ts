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

/**
 * What is signed of an item; undefined when a field is none of Adyen's. A list or an object would be signed as the text
 * that JavaScript makes of it, and be known by another id.
 */
export function adyenContent(item: unknown): string | undefined {
  const texts: string[] = []
  for (const path of signedFields) {
    const text = textOf(readPath(item, path), path)
    if (text === undefined) return undefined
    // Only the merchant writes freely; another colon would move text from one field into the next.
    if (text.includes(':') && path !== 'merchantReference') return undefined
    texts.push(text)
  }
  return texts.join(':')
}

function textOf(value: unknown, path: string): string | undefined {
  if (value === undefined || value === null) return ''
  if (typeof value === 'string') return value
  if (path === 'amount.value' && Number.isSafeInteger(value)) return String(value)
  return path === 'success' && typeof value === 'boolean' ? String(value) : undefined
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
  for (const element of items) {
    const item = readPath(element, 'NotificationRequestItem')
    const given = readPath(item, signatureField)
    if (typeof given !== 'string') return 'signature_missing'
    const content = adyenContent(item)
    if (content === undefined) return 'signature_mismatch'
    const expected = toBase64(await backend.hmac('SHA-256', key, utf8(content)))
    if (!equalText(given, expected)) return 'signature_mismatch'
  }
  return 'valid'
}
