/** Other senders than GitHub, through every adapter: over a socket, with what stands behind. */
import { getRequestListener } from '@hono/node-server'
import * as onFetch from '@webhook-inbox/core'
import {
  type ClaimedDelivery,
  getProvider,
  memoryStore,
  type WebhookOptions,
} from '@webhook-inbox/core'
import * as onExpress from '@webhook-inbox/express'
import * as onHono from '@webhook-inbox/hono'
import * as onKoa from '@webhook-inbox/koa'
import * as onNode from '@webhook-inbox/node'
import { type AdapterFixture, type SignRequestOptions, signRequest } from '@webhook-inbox/testkit'
import express5 from 'express'
import express4 from 'express4'
import { Hono } from 'hono'
import Koa3 from 'koa'
import Koa2 from 'koa2'
import { afterEach, describe, expect, it } from 'vitest'
import { credentialsOf } from '../providers/keys.ts'
import { listen } from './server.ts'

type Kind = 'webhook' | 'stripeWebhook' | 'slackWebhook' | 'standardWebhook'
type Options = WebhookOptions & { readonly provider?: 'shopify'; readonly path: string }
/** Answers `{ id, event, items }` of the delivery with this status. */
type Serve = (kind: Kind, options: Options, status: () => number) => Promise<AdapterFixture>

const shown = ({ id, event, items }: ClaimedDelivery) => ({
  id,
  event,
  ...(items === undefined ? {} : { items: items.map((item) => item.id) }),
})

// The functions differ in their context only, which nothing here uses.
function make<Guard>(
  module: { readonly githubWebhook: (options: never) => Guard },
  kind: Kind,
  options: object,
): Guard {
  return Reflect.apply(Reflect.get(module, kind), undefined, [options])
}

const serves: Readonly<Record<string, Serve>> = {
  'express 4': (kind, options, status) => {
    const app = express4()
    app.use(make(onExpress, kind, options), (req: express5.Request, res: express5.Response) => {
      res.status(status()).json(shown(onExpress.getWebhook<ClaimedDelivery>(req)))
    })
    return listen(app)
  },
  'express 5': (kind, options, status) => {
    const app = express5()
    app.use(make(onExpress, kind, options), (req, res) => {
      res.status(status()).json(shown(onExpress.getWebhook<ClaimedDelivery>(req)))
    })
    return listen(app)
  },
  'koa 2': (kind, options, status) => serveKoa(new Koa2(), kind, options, status),
  'koa 3': (kind, options, status) => serveKoa(new Koa3(), kind, options, status),
  hono: (kind, options, status) => {
    const app = new Hono()
    app.use(make(onHono, kind, options))
    app.all(
      '/in',
      (c) =>
        new Response(JSON.stringify(shown(onHono.getWebhook<ClaimedDelivery>(c))), {
          status: status(),
        }),
    )
    return listen(getRequestListener(app.fetch))
  },
  'node:http': (kind, options, status) => {
    const guard = make(onNode, kind, options)
    return listen((req, res) =>
      guard(req, res, () => {
        res.statusCode = status()
        res.end(JSON.stringify(shown(onNode.getWebhook<ClaimedDelivery>(req))))
      }),
    )
  },
  fetch: (kind, options, status) => {
    const handler = (webhook: ClaimedDelivery) => {
      if (status() === 422) webhook.fail(undefined, { retryable: false })
      else if (status() >= 400) throw new Error('failed by the handler')
    }
    const handle = make(onFetch, kind, { ...options, handler, onError: () => {} })
    return listen(getRequestListener(handle))
  },
}

function serveKoa(app: Koa3, kind: Kind, options: Options, status: () => number) {
  app.silent = true
  app.use(make(onKoa, kind, options))
  app.use((ctx) => {
    ctx.status = status()
    ctx.body = JSON.stringify(shown(onKoa.getWebhook<ClaimedDelivery>(ctx)))
  })
  return listen(app.callback())
}

let open: AdapterFixture[] = []
afterEach(async () => {
  await Promise.all(open.map((fixture) => fixture.close()))
  open = []
})

describe.each(Object.entries(serves))('on %s', (name, serve) => {
  const hasRoute = name !== 'fetch'

  async function site(
    provider: string,
    kind: Kind,
    { status = () => 200, ...extra }: Record<string, unknown> & { status?: () => number } = {},
  ) {
    const entry = getProvider(provider)
    if (entry === undefined) throw new Error(provider)
    const { secret = '', privateKey } = credentialsOf(entry)
    const options = {
      secret,
      store: memoryStore(),
      path: '/in',
      ...(kind === 'webhook' ? { provider: entry } : {}),
      ...extra,
    }
    const fixture = await serve(kind, Object(options), status)
    open.push(fixture)
    const send = async (
      sending: Partial<Omit<SignRequestOptions, 'body'>> & { readonly body?: string } = {},
    ) => {
      const request = await signRequest(entry, {
        secret,
        ...(privateKey === undefined ? {} : { privateKey }),
        event: 'thing.created',
        ...sending,
      })
      return read(await fetch(`${fixture.url}/in`, request))
    }
    return { url: `${fixture.url}/in`, send, entry }
  }

  async function read(response: Response) {
    const text = await response.text()
    const { status, headers } = response
    return { status, text, state: headers.get('webhook-inbox-status'), headers }
  }

  it.each([
    ['stripe', 'stripeWebhook'],
    ['slack', 'slackWebhook'],
    ['standard-webhooks', 'standardWebhook'],
    ['shopify', 'webhook'],
  ] as const)('%s: runs once, answers the copy, refuses a forgery', async (provider, kind) => {
    const { send, url } = await site(provider, kind)
    const first = await send({ deliveryId: 'd-1' })
    expect(first).toMatchObject({ status: 200, state: 'completed' })
    if (hasRoute) expect(JSON.parse(first.text)).toEqual({ id: 'd-1', event: 'thing.created' })
    const copy = await send({ deliveryId: 'd-1' })
    expect(copy).toMatchObject({ status: 200, state: 'completed' })
    expect(JSON.parse(copy.text)).toEqual({ status: 'completed', deliveryId: 'd-1' })
    expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(401)
  })

  it('Stripe by object: a second event of one change is a copy', async () => {
    const { send } = await site('stripe', 'stripeWebhook', { dedupBy: 'object' })
    const payload = { data: { object: { id: 'in_1' } } }
    const one = await send({ deliveryId: 'evt_1', event: 'invoice.paid', payload })
    if (hasRoute) expect(JSON.parse(one.text).id).toBe('in_1:invoice.paid')
    const two = await send({ deliveryId: 'evt_2', event: 'invoice.paid', payload })
    expect(JSON.parse(two.text)).toMatchObject({ status: 'completed' })
    const other = await send({ deliveryId: 'evt_3', event: 'invoice.voided', payload })
    if (hasRoute) expect(JSON.parse(other.text).id).toBe('in_1:invoice.voided')
    await expect(site('stripe', 'stripeWebhook', { dedupBy: 'objects' })).rejects.toThrow(/dedupBy/)
  })

  it('Slack: a handshake is answered, and a dead delivery says not to retry', async () => {
    const { send } = await site('slack', 'slackWebhook', { status: () => 422 })
    const challenge = await send({ payload: { type: 'url_verification', challenge: 'abc' } })
    expect(challenge).toMatchObject({
      status: 200,
      text: '{"challenge":"abc"}',
      state: 'handshake',
    })
    for (const expected of [422, 202]) {
      const answer = await send({ deliveryId: 'Ev1' })
      expect(answer.status).toBe(expected)
      expect(answer.state).toBe('dead')
      expect(answer.headers.get('x-slack-no-retry')).toBe('1')
    }
  })

  it('Slack: what failed and may run again does not say so', async () => {
    const { send } = await site('slack', 'slackWebhook', { status: () => 500 })
    const answer = await send({ deliveryId: 'Ev1' })
    expect(answer.status).toBe(500)
    expect(answer.headers.get('x-slack-no-retry')).toBeNull()
  })

  it('Discord: 204 without a body', async () => {
    const { send } = await site('discord', 'webhook', { status: () => 204 })
    const ping = await send({ payload: { type: 0 } })
    expect(ping).toMatchObject({ status: 204, text: '' })
    for (let copy = 0; copy < 2; copy++) {
      const answer = await send({ body: '{"type":1,"event":{"type":"ENTITLEMENT_CREATE"}}' })
      expect(answer).toMatchObject({ status: 204, text: '', state: 'completed' })
      expect(answer.headers.get('content-length')).toBeNull()
    }
  })

  it('Meta: a GET with the token gets its challenge, others 403 and 405', async () => {
    const { url } = await site('meta-whatsapp', 'webhook', { verifyToken: 'token' })
    const ask = async (query: string) => read(await fetch(url + query))
    const right = await ask('?hub.mode=subscribe&hub.challenge=42&hub.verify_token=token')
    expect(right).toMatchObject({ status: 200, text: '42', state: 'handshake' })
    expect((await ask('?hub.mode=subscribe&hub.challenge=42&hub.verify_token=no')).status).toBe(403)
    const wrong = await ask('')
    expect(wrong.status).toBe(405)
    expect(wrong.headers.get('allow')).toBe('POST, GET')
  })

  it('Square: the public address is signed, wherever the request arrives', async () => {
    const publicUrl = 'https://shop.example.test/square/in'
    const { send } = await site('square', 'webhook', { publicUrl })
    expect((await send({ url: publicUrl })).status).toBe(200)
    expect((await send({ url: 'https://shop.example.test/in' })).status).toBe(401)
    await expect(site('square', 'webhook')).rejects.toThrow(/Pass publicUrl: 'https:/)
  })

  it('SendGrid: the handler sees the new items; one that failed comes again alone', async () => {
    let status = 500
    const { send } = await site('sendgrid', 'webhook', { status: () => status })
    const body = JSON.stringify([
      { sg_event_id: 'a', event: 'open' },
      { sg_event_id: 'b', event: 'click' },
    ])
    expect((await send({ body })).status).toBe(500)
    status = 200
    const again = await send({ body })
    expect(again).toMatchObject({ status: 200, state: 'completed' })
    if (hasRoute) expect(JSON.parse(again.text).items).toEqual(['a', 'b'])
    const copy = await send({ body })
    expect(JSON.parse(copy.text)).toMatchObject({ status: 'completed' })
  })

  it('a name that there is not is told at construction', async () => {
    expect(() => make({ ...onExpress }, 'webhook', { provider: 'shopfy' })).toThrow(/"shopify"/)
  })
})
