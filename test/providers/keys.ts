/** Keys and secrets with which any entry of the catalogue can sign and verify, made anew in each run. */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import type { KeySource, Provider } from '@webhook-inbox/core'
import { providers } from '@webhook-inbox/core'
import * as jwtModule from '@webhook-inbox/core/jwt'

export const jwtEntries: readonly Provider[] = Object.values(jwtModule).filter(
  (value): value is Provider => typeof value === 'object' && 'signature' in value,
)

export const allEntries: readonly Provider[] = [...Object.values(providers), ...jwtEntries]

export function entryOf(name: string): Provider {
  const entry = allEntries.find((one) => one.name === name)
  if (entry === undefined) throw new Error(`The catalogue has no entry "${name}".`)
  return entry
}

export interface Credentials {
  /** For the receiver. */
  readonly secret?: string
  readonly keys?: KeySource
  /** For the sender, where it has a key pair. */
  readonly privateKey?: string
}

const pem = { type: 'pkcs8', format: 'pem' } as const
const ed25519 = generateKeyPairSync('ed25519')
export const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
export const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
export const rsaPem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString()

/** Credentials for one scheme of an entry. */
export function credentialsOf(entry: Provider, scheme = 0): Credentials {
  const signature = [entry.signature].flat()[scheme]
  if (signature === undefined) throw new Error(`${entry.name} has no scheme ${scheme}`)
  switch (signature.scheme) {
    case 'ed25519': {
      const raw = ed25519.publicKey.export({ type: 'spki', format: 'der' }).subarray(12)
      const { encoding = 'base64', prefix = '' } = signature.secret ?? {}
      const text = raw.toString(encoding === 'utf8' ? 'base64' : encoding)
      return { secret: prefix + text, privateKey: ed25519.privateKey.export(pem).toString() }
    }
    case 'ecdsa-p256':
      return {
        secret: p256.publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
        privateKey: p256.privateKey.export(pem).toString(),
      }
    case 'rsa':
      return { secret: rsaPem, privateKey: rsa.privateKey.export(pem).toString() }
    default:
      break
  }
  const privateKey = rsa.privateKey.export(pem).toString()
  switch (entry.name) {
    case 'aws-sns':
      return { secret: 'arn:aws:sns:us-east-1:1:topic', privateKey, keys: () => rsaPem }
    case 'paypal':
      return { secret: '8PT597110X687430LKGECATA', privateKey, keys: () => rsaPem }
    case 'google-pubsub':
      return {
        secret: 'https://hooks.example.test/push push@p.iam.gserviceaccount.com',
        privateKey,
        keys: () => rsaPem,
      }
    case 'plaid':
      return {
        privateKey: p256.privateKey.export(pem).toString(),
        keys: () => ({ ...p256.publicKey.export({ format: 'jwk' }) }),
      }
    case 'azure-devops':
    case 'postmark':
    case 'braintree':
    case 'livekit':
    case 'pusher':
      return { secret: `key:${randomBytes(24).toString('hex')}` }
    default:
      break
  }
  const { encoding = 'utf8', prefix = '' } = 'secret' in signature ? (signature.secret ?? {}) : {}
  const bytes = randomBytes(32)
  return { secret: prefix + bytes.toString(encoding === 'utf8' ? 'hex' : encoding) }
}

/** Headers that say which scheme a request uses, or what it signs. */
export function headersFor(entry: Provider, index: number): Record<string, string> {
  if (entry.name === 'twilio' && index > 0) {
    const algorithm = index === 1 ? 'HMAC_SHA1' : 'HMAC_SHA256'
    return { 'x-twilio-webhooks-signature-settings': `key=k,algorithm=${algorithm}` }
  }
  if (entry.name === 'hubspot' && index > 0)
    return { 'x-hubspot-signature-version': index === 1 ? 'v2' : 'v1' }
  if (entry.name === 'contentful')
    return {
      'x-contentful-signed-headers':
        'content-type,x-contentful-signed-headers,x-contentful-timestamp',
    }
  if (entry.name === 'box')
    return { 'box-signature-version': '1', 'box-signature-algorithm': 'HmacSHA256' }
  return {}
}
