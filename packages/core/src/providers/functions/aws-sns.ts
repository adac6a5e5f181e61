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
    // Line breaks are all that stands between the fields: only the message may have some.
    if (name !== 'Message' && value?.includes('\n') === true) return undefined
    if (value !== undefined) text += `${name}\n${value}\n`
    else if (name !== 'Subject') return undefined
  }
  return text
}

/**
 * The secret is the ARN of the topic, which anybody else's topic has not, the certificate itself, or both. Certificates
 * are taken from SNS's own hosts only.
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
  const { topic, pem } = secretParts(secret?.text ?? '')
  if (topic !== '' && fieldOf(message, 'TopicArn') !== topic) return 'signature_mismatch'
  const algorithm = version === '1' ? 'rsa-sha1' : 'rsa-sha256'
  const key =
    pem === undefined
      ? await certificateKey(certificateUrl, algorithm, keys)
      : await pinnedKey(pem, algorithm)
  if (key === undefined) return 'key_unavailable'
  if (!(await backend.verify(algorithm, key, signature, utf8(content)))) return 'signature_mismatch'
  const time = fieldOf(message, 'Timestamp')
  return checkTimestamp({ unit: 'iso' }, time, { nowMs: request.nowMs, toleranceMs }) ?? 'valid'
}

function secretParts(secret: string): { readonly topic: string; readonly pem?: string } {
  const at = secret.indexOf('-----BEGIN')
  return at === -1
    ? { topic: secret.trim() }
    : { topic: secret.slice(0, at).trim(), pem: secret.slice(at) }
}

// A region, and nothing like one: sns.s3-us-west-2.amazonaws.com is a bucket that somebody may own.
function isOwnAddress(url: string): boolean {
  return /^https:\/\/sns\.[a-z]{2}(-[a-z]+){1,3}-\d{1,2}\.amazonaws\.com(\.cn)?\/[\w./-]+\.pem$/.test(
    url,
  )
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
