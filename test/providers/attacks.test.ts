/** What somebody can do who has seen a signed request, or none. */
import { createHmac } from 'node:crypto'
import {
  createReceiver,
  type KeySource,
  memoryStore,
  type ProviderName,
  type Receipt,
} from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const nowSeconds = (): number => Math.floor(Date.now() / 1000)

function hmac(
  key: string | Uint8Array,
  text: string,
  encoding: 'hex' | 'base64' = 'hex',
  hash = 'sha256',
): string {
  return createHmac(hash, key).update(text).digest(encoding)
}

interface Seen {
  readonly id: string
  readonly event: string
  readonly payload: unknown
  readonly items: readonly string[] | undefined
}

function site(
  provider: ProviderName,
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

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const json = { 'content-type': 'application/json' }

describe('the content type, which nobody signs', () => {
  it('GitHub: a text in a JSON body is no form', async () => {
    const { send, seen } = site('github', 'topsecret')
    const forged = encodeURIComponent(JSON.stringify({ action: 'published', release: {} }))
    const payload = { action: 'created', comment: { body: `hello &payload=${forged}& bye` } }
    const body = JSON.stringify(payload)
    const signature = `sha256=${hmac('topsecret', body)}`
    for (const [id, type] of [
      ['1', json],
      ['2', form],
      ['3', { 'content-type': 'text/plain' }],
    ] as const) {
      const headers = { 'x-hub-signature-256': signature, 'x-github-event': 'issue_comment' }
      await send({ ...headers, ...type, 'x-github-delivery': id }, body)
    }
    expect(seen.map((one) => one.payload)).toEqual([payload, payload, payload])
  })

  it('Stripe: an id in a text of the body is not its id', async () => {
    const { send, seen } = site('stripe', 'whsec_x')
    const name = 'x&id=evt_forged&type=invoice.paid&amount=1000000&y='
    const body = JSON.stringify({ id: 'evt_1', type: 'customer.updated', data: { name } })
    const time = nowSeconds()
    const headers = { 'stripe-signature': `t=${time},v1=${hmac('whsec_x', `${time}.${body}`)}` }
    for (const type of [json, form]) await send({ ...headers, ...type }, body)
    expect(seen.map(({ id, event }) => [id, event])).toEqual([['evt_1', 'customer.updated']])
  })

  it('LINE: a list stays a list', async () => {
    const { send, seen } = site('line', 'l')
    const body = JSON.stringify({ events: [{ type: 'message', webhookEventId: 'A' }] })
    const headers = { 'x-line-signature': hmac('l', body, 'base64') }
    for (const type of [json, form]) await send({ ...headers, ...type }, body)
    expect(seen.map(({ items }) => items)).toEqual([['A']])
  })

  it('Slack: a form stays a form', async () => {
    const { send, seen } = site('slack', 'sl')
    const body = 'command=%2Fdeploy&text=now&trigger_id=T1'
    const time = nowSeconds()
    const headers = {
      'x-slack-request-timestamp': String(time),
      'x-slack-signature': `v0=${hmac('sl', `v0:${time}:${body}`)}`,
    }
    for (const type of [form, json, {}]) await send({ ...headers, ...type }, body)
    expect(seen.map(({ id }) => id)).toEqual(['T1'])
  })
})
