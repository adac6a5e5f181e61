import { optionError } from './errors.ts'
import { type HeadersInput, toHeaderMap } from './headers.ts'
import { bytesOption } from './options.ts'
import { type ProviderName, providerOf } from './providers/catalogue.ts'
import { contentOf } from './providers/content.ts'
import {
  importSecret,
  isPublicKey,
  type SchemeKey,
  signaturesOf,
  tokenOf,
} from './providers/keys.ts'
import { signPublicly } from './providers/private-key.ts'
import type { Provider, Signature } from './providers/provider.ts'
import { hashOf } from './providers/signature.ts'
import { writeTime } from './providers/timestamp.ts'

/** What is to be signed. */
export interface SignMessage {
  /** Of senders with a key pair the private key, PKCS #8 in PEM. */
  readonly secret: string
  readonly body: Uint8Array
  /** Signed headers, such as a message id; the time is added. */
  readonly headers?: HeadersInput
  /** @default 'POST' */
  readonly method?: string
  /** The address that the sender was given. @default '' */
  readonly url?: string
  /** @default now */
  readonly at?: Date
  /** Which of an entry's schemes, by its place. @default 0 */
  readonly scheme?: number
}

/**
 * The headers with which a provider signs these bytes: for tests, and for services that send webhooks.
 * @throws WebhookInboxError `ERR_OPTION` for a blank or wrong secret, an unknown provider, a body that is not bytes, or
 * a scheme whose signature is not in a header
 */
export async function signatureHeaders(
  provider: ProviderName | Provider,
  message: SignMessage,
): Promise<Record<string, string>> {
  const entry = providerOf(provider)
  const { secret, method = 'POST', url = '', at = new Date(), scheme = 0 } = message
  if (typeof secret !== 'string' || secret.trim() === '')
    throw optionError(`signatureHeaders: "secret" is missing or blank.`)
  const body = bytesOption('signatureHeaders', 'body', message.body)
  const signature = signaturesOf(entry)[scheme]
  const name = headerOf(signature)
  if (signature === undefined || name === undefined) {
    throw optionError(
      `signatureHeaders: ${entry.name} puts its signature not only into a header; signRequest of @webhook-inbox/testkit builds the whole request.`,
    )
  }
  const { separator, prefix = '' } = signature
  if (signature.scheme === 'token') return { [name]: prefix + tokenOf(signature, secret) }
  if (signature.scheme === 'jwt' || signature.scheme === 'function') {
    throw optionError(
      `signatureHeaders: the signature of ${entry.name} is made by signRequest of @webhook-inbox/testkit.`,
    )
  }
  const { timestamp } = signature
  const time = timestamp === undefined ? undefined : writeTime(at.getTime(), timestamp.unit)
  const own: Record<string, string> = {}
  if (timestamp?.header !== undefined && timestamp.header !== name && time !== undefined)
    own[timestamp.header] = (timestamp.prefix ?? '') + time
  const headers = { ...toHeaderMap(message.headers ?? {}), ...own }
  const request = { method, url, headers, body, nowMs: at.getTime() }
  const key = isPublicKey(signature) ? undefined : await keyOf(entry, signature, secret)
  const [content] = await contentOf(signature.content, request, {
    timestamp: time,
    secret: key?.secret.bytes ?? new Uint8Array(),
  })
  if (content === undefined) {
    throw optionError(
      `signatureHeaders: the request lacks a header or an address that ${entry.name} signs.`,
    )
  }
  const text = isPublicKey(signature)
    ? await signPublicly(signature, secret, content)
    : await hashOf(signature, key ?? { native: undefined }, content)
  const values = [`${prefix}${text}`]
  if (timestamp?.header === name && time !== undefined)
    values.unshift((timestamp.prefix ?? '') + time)
  return { ...own, [name]: values.join(separator ?? '') }
}

function headerOf(signature: Signature | undefined): string | undefined {
  const { header } = signature ?? {}
  return typeof header === 'string' ? header : header?.[0]
}

async function keyOf(entry: Provider, signature: Signature, secret: string): Promise<SchemeKey> {
  const { schemes } = await importSecret(entry, secret)
  const key = schemes.find((one) => one.signature === signature)
  if (key === undefined)
    throw optionError(
      `signatureHeaders: "secret" is not ${entry.secretIs ?? `a secret of ${entry.name}`}.`,
    )
  return key
}
