/** What the tests of this folder share: a receiver that tells what it has run, an entry, keys. */
import { createHmac, sign } from 'node:crypto'
import {
  createReceiver,
  type KeySource,
  memoryStore,
  type Provider,
  type ProviderName,
  type Receipt,
} from '@webhook-inbox/core'
import { p256, rsa } from './keys.ts'

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
export const nowSeconds = (): number => Math.floor(Date.now() / 1000)

export function hmac(
  key: string | Uint8Array,
  text: string,
  encoding: 'hex' | 'base64' = 'hex',
  hash = 'sha256',
): string {
  return createHmac(hash, key).update(text).digest(encoding)
}

/** Hex HMAC-SHA256 of the body, in a header. */
export const acme = {
  name: 'acme',
  signature: {
    scheme: 'hmac',
    hash: 'SHA-256',
    encoding: 'hex',
    header: 'acme-signature',
    content: '{body}',
  },
  deliveryId: { digest: 'body' },
  event: { value: 'event' },
  retriesByItself: true,
  retentionMs: 86_400_000,
} as const satisfies Provider

export const p256Spki = p256.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')

export function snsMessage(change: Readonly<Record<string, string>> = {}) {
  const message = {
    Type: 'Notification',
    MessageId: 'M1',
    TopicArn: 'arn:aws:sns:us-east-1:1:topic',
    Message: 'hi',
    Timestamp: '2026-01-01T00:00:00.000Z',
    SignatureVersion: '2',
    SigningCertURL: 'https://sns.us-east-1.amazonaws.com/a.pem',
    ...change,
  }
  const signed = (['Message', 'MessageId', 'Timestamp', 'TopicArn', 'Type'] as const)
    .map((name) => `${name}\n${message[name]}\n`)
    .join('')
  const Signature = sign('sha256', bytes(signed), rsa.privateKey).toString('base64')
  return { ...message, Signature }
}

export interface Seen {
  readonly id: string
  readonly event: string
  readonly payload: unknown
  readonly items: readonly string[] | undefined
}

export function site(
  provider: ProviderName | Provider,
  secret: string,
  options: {
    readonly publicUrl?: string
    readonly toleranceMs?: number
    readonly maxBodyBytes?: number
    readonly replayGuard?: boolean
    readonly keys?: KeySource
  } = {},
) {
  const seen: Seen[] = []
  const receiver = createReceiver<undefined>({
    store: memoryStore(),
    onError: () => {},
    handler: ({ id, event, payload, items }) =>
      void seen.push({ id, event, payload, items: items?.map((item) => item.id) }),
    ...options,
    provider,
    secret,
  })
  const send = (
    headers: Readonly<Record<string, string>>,
    body: string | Uint8Array,
    url = '/',
    method = 'POST',
  ): Promise<Receipt> =>
    receiver.receive(
      { method, url, headers, body: typeof body === 'string' ? bytes(body) : body },
      undefined,
    )
  return { send, seen }
}

export const form = { 'content-type': 'application/x-www-form-urlencoded' }
export const json = { 'content-type': 'application/json' }
