import type { Delivery } from './delivery.ts'
import { optionError } from './errors.ts'
import { type HeadersInput, toHeaderMap } from './headers.ts'
import { bytesOption } from './options.ts'
import { type ProviderName, providerOf } from './providers/catalogue.ts'
import {
  type ParseCode,
  parseRequest,
  type VerifyCode,
  verifySignature,
} from './providers/interpret.ts'
import type { Provider } from './providers/provider.ts'
import { type Secret, secretLookup } from './secret.ts'

export interface VerifyRequest {
  /** @default 'POST' */
  readonly method?: string
  /** @default '' */
  readonly url?: string
  readonly headers: HeadersInput
  /** The raw bytes as they came: never a parsed or re-serialised body. */
  readonly body: Uint8Array
  readonly secret: Secret
  /** The time to judge timestamps at. @default now */
  readonly now?: Date
}

export type Verification =
  | { readonly valid: true; readonly delivery: Delivery }
  | { readonly valid: false; readonly code: VerifyCode | ParseCode }

/**
 * Checks a request's signature and reads the delivery out of it, without a store.
 * @throws WebhookInboxError `ERR_OPTION` for a missing or blank secret, an unknown provider or a body that is not bytes,
 * `ERR_SECRET_UNAVAILABLE` when the secret function fails
 */
export async function verify(
  provider: ProviderName | Provider,
  request: VerifyRequest,
): Promise<Verification> {
  const entry = providerOf(provider)
  if (typeof request !== 'object' || request === null)
    throw optionError('verify: pass the request: verify(provider, { headers, body, secret }).')
  const headers = toHeaderMap(request.headers)
  const body = bytesOption('verify', 'body', request.body)
  const lookUp = secretLookup('verify', entry, request.secret)
  const keys = await lookUp({ method: request.method ?? 'POST', url: request.url ?? '', headers })
  const matched = await verifySignature(entry, keys, headers, body)
  if (typeof matched === 'string') return { valid: false, code: matched }
  const parsed = parseRequest(entry, headers, body)
  if (typeof parsed === 'string') return { valid: false, code: parsed }
  return {
    valid: true,
    delivery: {
      provider: entry.name,
      endpoint: parsed.endpoint ?? '',
      id: parsed.deliveryId,
      event: parsed.event,
      action: parsed.action,
      receivedAt: request.now ?? new Date(),
      headers,
      rawBody: body,
      payload: parsed.payload,
    },
  }
}
