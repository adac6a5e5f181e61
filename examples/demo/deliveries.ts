import { createHmac, randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'

/** One signed request, as GitHub would send it. */
export interface Delivery {
  readonly id: string
  readonly event: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Every payload that GitHub documents by example, signed; each fifth is form-encoded, as GitHub's default is. */
export function githubDeliveries(secret: string): readonly Delivery[] {
  return examples().map(([event, payload], index) => {
    const json = JSON.stringify(payload)
    return index % 5 === 0
      ? sign(
          secret,
          event,
          `payload=${encodeURIComponent(json)}`,
          'application/x-www-form-urlencoded',
        )
      : sign(secret, event, json, 'application/json')
  })
}

/** What somebody without the secret could send in the place of a delivery. */
export function forgeries(delivery: Delivery): readonly Delivery[] {
  const { 'x-hub-signature-256': signature = '', ...unsigned } = delivery.headers
  return [
    { ...delivery, body: `${delivery.body} ` },
    sign('a guess', delivery.event, delivery.body, delivery.headers['content-type'] ?? ''),
    { ...delivery, headers: unsigned },
    { ...delivery, headers: { ...unsigned, 'x-hub-signature-256': signature.slice(0, -1) } },
  ]
}

function sign(secret: string, event: string, body: string, contentType: string): Delivery {
  const id = randomUUID()
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  return {
    id,
    event,
    body,
    headers: {
      'content-type': contentType,
      'x-github-event': event,
      'x-github-delivery': id,
      'x-github-hook-id': '42',
      'x-hub-signature-256': `sha256=${signature}`,
    },
  }
}

function examples(): readonly (readonly [event: string, payload: unknown])[] {
  const definitions: unknown = createRequire(import.meta.url)('@octokit/webhooks-examples')
  if (!Array.isArray(definitions)) throw new Error('@octokit/webhooks-examples holds no list')
  return definitions
    .filter(isDefinition)
    .flatMap(({ name, examples: payloads }) => payloads.map((payload) => [name, payload] as const))
}

function isDefinition(
  value: unknown,
): value is { readonly name: string; readonly examples: readonly unknown[] } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    'examples' in value &&
    Array.isArray(value.examples)
  )
}
