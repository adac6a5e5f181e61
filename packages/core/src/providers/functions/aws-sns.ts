/** AWS SNS signs a list of fields with a certificate of its own. */
import { backend } from '#crypto'
import { fromBase64, utf8 } from '../../crypto/bytes.ts'
import { spkiOfPem } from '../../crypto/der.ts'
import type { PublicKey, PublicKeyAlgorithm } from '../../crypto/types.ts'
import { readPath } from '../fields.ts'
import type { SignatureInput, VerifyCode } from '../provider.ts'
import { checkTimestamp } from '../timestamp.ts'
import { jsonOf } from './json-body.ts'
import { certificateKey } from './public-keys.ts'

const notificationFields = ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
const confirmationFields = [
  'Message',
  'MessageId',
  'SubscribeURL',
  'Timestamp',
  'Token',
  'TopicArn',
  'Type',
]

/** What is signed of a message; undefined when it lacks a field. */
export function snsContent(message: unknown): string | undefined {
  const type = fieldOf(message, 'Type')
  const isConfirmation = type === 'SubscriptionConfirmation' || type === 'UnsubscribeConfirmation'
  let text = ''
  for (const name of isConfirmation ? confirmationFields : notificationFields) {
    const value = fieldOf(message, name)
    if (value !== undefined) text += `${name}\n${value}\n`
    else if (name !== 'Subject') return undefined
  }
  return text
}

/**
 * The secret is the ARN of the topic, which anybody else's topic has not, or the certificate itself. Certificates are
 * taken from SNS's own hosts only.
 */
export async function verifySns(input: SignatureInput): Promise<'valid' | VerifyCode> {
  const { request, secret, keys, toleranceMs } = input
  const message = jsonOf(request.body)
  const signature = fromBase64(fieldOf(message, 'Signature') ?? '')
  const certificateUrl = fieldOf(message, 'SigningCertURL')
  if (signature === undefined || signature.length === 0 || certificateUrl === undefined)
    return 'signature_missing'
  const version = fieldOf(message, 'SignatureVersion')
  const content = snsContent(message)
  if ((version !== '1' && version !== '2') || content === undefined) return 'signature_mismatch'
  if (!isOwnAddress(certificateUrl)) return 'signature_mismatch'
  const isPinned = secret?.text.includes('-----BEGIN') === true
  if (!isPinned && secret !== undefined && fieldOf(message, 'TopicArn') !== secret.text)
    return 'signature_mismatch'
  const algorithm = version === '1' ? 'rsa-sha1' : 'rsa-sha256'
  const key = isPinned
    ? await pinnedKey(secret.text, algorithm)
    : await certificateKey(certificateUrl, algorithm, keys)
  if (key === undefined) return 'key_unavailable'
  if (!(await backend.verify(algorithm, key, signature, utf8(content)))) return 'signature_mismatch'
  const time = fieldOf(message, 'Timestamp')
  return checkTimestamp({ unit: 'iso' }, time, { nowMs: request.nowMs, toleranceMs }) ?? 'valid'
}

function isOwnAddress(url: string): boolean {
  return /^https:\/\/sns\.[a-zA-Z0-9-]{3,}\.amazonaws\.com(\.cn)?\/[\w./-]+\.pem$/.test(url)
}

async function pinnedKey(
  pem: string,
  algorithm: PublicKeyAlgorithm,
): Promise<PublicKey | undefined> {
  const spki = spkiOfPem(pem)
  return spki === undefined ? undefined : backend.importPublicKey(algorithm, spki)
}

function fieldOf(message: unknown, name: string): string | undefined {
  const value = readPath(message, name)
  return typeof value === 'string' ? value : undefined
}
