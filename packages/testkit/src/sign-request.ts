import {
  getProvider,
  type Provider,
  type ProviderName,
  signatureHeaders,
} from '@webhook-inbox/core'

export interface SignRequestOptions {
  readonly secret: string
  /** The value of the provider's event header, for instance `push`. */
  readonly event: string
  /** Sent as JSON. Excludes `body`. @default {} */
  readonly payload?: unknown
  /** The exact bytes to sign, or their text. Excludes `payload`. */
  readonly body?: string | Uint8Array
  /** @default a random UUID */
  readonly deliveryId?: string
  /** The value of the provider's endpoint header; for GitHub the hook id, for instance `1234`. @default no header */
  readonly endpoint?: string
  /** Sends the JSON as a form field, as GitHub does by default. @default false */
  readonly form?: boolean
  /** Further headers; they win over those that are made here. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A request as `fetch`, Hono's `app.request` and supertest's `set` and `send` take it. */
export interface SignedRequest<Body extends string | Uint8Array = string> {
  readonly method: 'POST'
  /** Lower-case names. */
  readonly headers: Record<string, string>
  /** Text, unless bytes were given. */
  readonly body: Body
}

/**
 * Builds a request that the provider could have sent, for the tests of your own receiver.
 *
 * @example
 * const request = await signRequest('github', { secret, event: 'push', payload: { ref: 'refs/heads/main' } })
 * await fetch(`${url}/webhooks/github`, request)
 * await app.request('/webhooks/github', request)
 * await supertest(app).post('/webhooks/github').set(request.headers).send(request.body)
 *
 * @throws TypeError for an unknown provider
 * @throws WebhookInboxError `ERR_OPTION` for a blank secret
 */
export async function signRequest<Bytes extends Uint8Array>(
  provider: ProviderName | Provider,
  options: SignRequestOptions & { readonly body: Bytes; readonly form?: false },
): Promise<SignedRequest<Bytes>>
export async function signRequest(
  provider: ProviderName | Provider,
  options: SignRequestOptions & { readonly body?: string },
): Promise<SignedRequest>
export async function signRequest(
  provider: ProviderName | Provider,
  options: SignRequestOptions,
): Promise<SignedRequest<string | Uint8Array>> {
  const entry = typeof provider === 'string' ? getProvider(provider) : provider
  if (entry === undefined) throw new TypeError(`signRequest: unknown provider "${provider}".`)
  const { deliveryId = crypto.randomUUID(), endpoint, form = false } = options
  if (form && entry.formField === undefined)
    throw new TypeError(`signRequest: ${entry.name} sends no forms.`)
  const content = options.body ?? JSON.stringify(options.payload ?? {})
  const body = form
    ? new URLSearchParams({ [entry.formField ?? 'payload']: String(content) }).toString()
    : content
  const headers: Record<string, string> = {
    'content-type': form ? 'application/x-www-form-urlencoded' : 'application/json',
  }
  // What a provider states in the body is the payload's to say.
  if ('header' in entry.event) headers[entry.event.header] = options.event
  if ('header' in entry.deliveryId) headers[entry.deliveryId.header] = deliveryId
  if (entry.endpoint !== undefined && endpoint !== undefined)
    headers[entry.endpoint.header] = endpoint
  Object.assign(
    headers,
    await signatureHeaders(entry, { secret: options.secret, body: bytesOf(body) }),
  )
  for (const [name, value] of Object.entries(options.headers ?? {}))
    headers[name.toLowerCase()] = value
  return { method: 'POST', headers, body }
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? new TextEncoder().encode(body) : body
}
