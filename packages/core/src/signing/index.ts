/** The senders whose signature is in the body, or needs more than the body: what they would send. For tests. */
import { backend } from '#crypto'
import { toHex, utf8 } from '../crypto/bytes.ts'
import { optionError } from '../errors.ts'
import { adyenContent } from '../providers/functions/adyen.ts'
import { snsContent } from '../providers/functions/aws-sns.ts'
import { braintreeKeys, signBraintree } from '../providers/functions/braintree.ts'
import { coinbaseCdpContent } from '../providers/functions/coinbase-cdp.ts'
import { paypalContent } from '../providers/functions/paypal.ts'
import { decodeSecret } from '../providers/keys.ts'
import { signPublicly } from '../providers/private-key.ts'

/** What is to be signed. */
export interface SigningInput {
  /** What the receiver has as its secret. */
  readonly secret: string | undefined
  /** Of senders with a key pair: PKCS #8 in PEM. */
  readonly privateKey: string | undefined
  /** The decoded JSON or the fields of a form; not changed. */
  readonly payload: unknown
  readonly headers: Readonly<Record<string, string>>
  readonly at: Date
}

/** A payload with its signature in it, or headers that are made of the finished body. */
export interface Signed {
  readonly payload: unknown
  readonly headersOf?: (body: Uint8Array) => Promise<Readonly<Record<string, string>>>
}

export type Signer = (input: SigningInput) => Promise<Signed>

/** By the name of the entry. */
export const signers: Readonly<Record<string, Signer>> = {
  async adyen({ secret, payload }) {
    const bytes = decodeSecret(secretOf('adyen', secret), { encoding: 'hex' })
    if (bytes === undefined) throw optionError('signRequest: the secret of adyen is hex.')
    const key = await backend.importHmacKey('SHA-256', bytes)
    const { notificationItems, ...rest } = fieldsOf(payload)
    const items = Array.isArray(notificationItems) ? notificationItems : []
    const signed = items.map(async (element: unknown) => {
      const item = fieldsOf(fieldsOf(element).NotificationRequestItem)
      const content = adyenContent(item)
      if (content === undefined) {
        throw optionError(
          'signRequest: an item of adyen holds texts; only merchantReference may have a colon, amount.value is a whole number.',
        )
      }
      const digest = await backend.hmac('SHA-256', key, utf8(content))
      const hmacSignature = btoa(String.fromCharCode(...digest))
      const additionalData = { ...fieldsOf(item.additionalData), hmacSignature }
      return { NotificationRequestItem: { ...item, additionalData } }
    })
    return { payload: { ...rest, notificationItems: await Promise.all(signed) } }
  },

  async mailgun({ secret, payload, at }) {
    const key = await backend.importHmacKey('SHA-256', utf8(secretOf('mailgun', secret)))
    const timestamp = String(Math.floor(at.getTime() / 1000))
    const token = toHex(crypto.getRandomValues(new Uint8Array(25)))
    const signature = toHex(await backend.hmac('SHA-256', key, utf8(timestamp + token)))
    return { payload: { signature: { timestamp, token, signature }, ...fieldsOf(payload) } }
  },

  async braintree({ secret, payload }) {
    const { publicKey = 'public', privateKey } = braintreeKeys(secretOf('braintree', secret))
    const { bt_payload: given } = fieldsOf(payload)
    const text =
      typeof given === 'string' ? given : btoa('<notification><kind>check</kind></notification>\n')
    const signature = await signBraintree(privateKey, text)
    return { payload: { bt_signature: `${publicKey}|${signature}`, bt_payload: text } }
  },

  async 'aws-sns'({ secret, privateKey, payload, at }) {
    const message = {
      Type: 'Notification',
      MessageId: crypto.randomUUID(),
      TopicArn: secret?.startsWith('arn:') === true ? secret : 'arn:aws:sns:us-east-1:1:topic',
      Message: '',
      Timestamp: at.toISOString(),
      SignatureVersion: '2',
      SigningCertURL: 'https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0.pem',
      ...fieldsOf(payload),
    }
    const content = snsContent(message)
    if (content === undefined)
      throw optionError('signRequest: a message of aws-sns lacks a field that is signed.')
    const scheme = { scheme: 'rsa', encoding: 'base64', content: '{body}' } as const
    const hash = message.SignatureVersion === '1' ? 'SHA-1' : 'SHA-256'
    const key = keyOf('aws-sns', privateKey)
    const Signature = await signPublicly({ ...scheme, hash }, key, utf8(content))
    return { payload: { ...message, Signature } }
  },

  async paypal({ secret, privateKey, payload, at }) {
    const scheme = { scheme: 'rsa', encoding: 'base64', content: '{body}' } as const
    return {
      payload,
      async headersOf(body) {
        const headers = {
          'paypal-transmission-id': crypto.randomUUID(),
          'paypal-transmission-time': at.toISOString().replace(/\.\d+/, ''),
          'paypal-cert-url': 'https://api.paypal.com/v1/notifications/certs/CERT-1',
          'paypal-auth-algo': 'SHA256withRSA',
        }
        const request = { method: 'POST', url: '', headers, body, nowMs: at.getTime() }
        const content = utf8(paypalContent(request, secretOf('paypal', secret)))
        const signature = await signPublicly(scheme, keyOf('paypal', privateKey), content)
        return { ...headers, 'paypal-transmission-sig': signature }
      },
    }
  },

  async 'coinbase-cdp'({ secret, payload, headers, at }) {
    const key = await backend.importHmacKey('SHA-256', utf8(secretOf('coinbase-cdp', secret)))
    return {
      payload,
      async headersOf(body) {
        const start = `t=${Math.floor(at.getTime() / 1000)},h=content-type`
        const type = headers['content-type'] ?? 'application/json'
        const signed = { ...headers, 'content-type': type, 'x-hook0-signature': start }
        const request = { method: 'POST', url: '', headers: signed, body, nowMs: at.getTime() }
        const [content = body] = coinbaseCdpContent(request)
        const signature = toHex(await backend.hmac('SHA-256', key, content))
        return { 'content-type': type, 'x-hook0-signature': `${start},v1=${signature}` }
      },
    }
  },

  async pusher({ secret, payload }) {
    const text = secretOf('pusher', secret)
    const at = text.indexOf(':')
    return {
      payload,
      async headersOf(body) {
        const key = await backend.importHmacKey('SHA-256', utf8(text.slice(at + 1)))
        const signature = toHex(await backend.hmac('SHA-256', key, body))
        return { 'x-pusher-key': text.slice(0, Math.max(0, at)), 'x-pusher-signature': signature }
      },
    }
  },
}

function secretOf(name: string, secret: string | undefined): string {
  if (secret !== undefined && secret.trim() !== '') return secret
  throw optionError(`signRequest: "secret" is missing or blank, and ${name} signs with it.`)
}

function keyOf(name: string, privateKey: string | undefined): string {
  if (privateKey !== undefined) return privateKey
  throw optionError(
    `signRequest: ${name} signs with a key pair. Pass privateKey (PKCS #8 in PEM), and give the receiver the public one.`,
  )
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}
