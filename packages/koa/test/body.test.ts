import { githubWebhook } from '@webhook-inbox/koa'
import type { Middleware } from 'koa'
import bodyParser from 'koa-bodyparser'
import { afterEach, describe, expect, test } from 'vitest'
import { bytesOf, delivery, headOf, secret, watchedStore } from '../../node/test/support.ts'
import { closeAll, listen, versions } from './versions.ts'

afterEach(closeAll)

const json = '{"zen":"Speak like a human ☕"}'
const form = `payload=${encodeURIComponent(json)}`
const asForm = { 'content-type': 'application/x-www-form-urlencoded' }

describe.each(versions)('%s: bodies', (_name, Koa) => {
  /** An app that tells what its route sees of the body. */
  function reading(before: Middleware[] = [], after: Middleware[] = [], maxBodyBytes = 1000) {
    const store = watchedStore()
    const app = new Koa()
    for (const middleware of before) app.use(middleware)
    app.use(githubWebhook({ secret, store, maxBodyBytes }))
    for (const middleware of after) app.use(middleware)
    app.use((ctx) => {
      ctx.body = {
        payload: ctx.state.webhook.payload ?? 'unreadable',
        bytes: Buffer.from(ctx.state.webhook.rawBody).toString('hex'),
        body: Reflect.get(ctx.request, 'body') ?? 'unreadable',
        rawBody: Buffer.from(Reflect.get(ctx.request, 'rawBody')).toString('hex'),
      }
    })
    return { app, store }
  }

  function seen(body: string | Uint8Array, payload: unknown = JSON.parse(json)) {
    const bytes = Buffer.from(body).toString('hex')
    return { payload, bytes, body: payload, rawBody: bytes }
  }

  const readings: Record<string, Middleware[]> = {
    'nothing before us': [],
    'koa-bodyparser before us': [bodyParser()],
    'koa-bodyparser for text before us': [bodyParser({ enableTypes: ['json', 'form', 'text'] })],
    'bytes on ctx.request.body': [
      async (ctx, next) => {
        const chunks: Buffer[] = []
        for await (const chunk of ctx.req) chunks.push(chunk)
        Reflect.set(ctx.request, 'body', Buffer.concat(chunks))
        await next()
      },
    ],
  }

  test.each(Object.entries(readings))('%s', async (_, before) => {
    const { app } = reading(before)
    const server = await listen(app)
    for (const request of [delivery(json), delivery(form, asForm)]) {
      const response = await server.send(request)
      expect([response.status, JSON.parse(response.text)]).toEqual([200, seen(request.body)])
    }
  })

  const gone: Record<string, { before: Middleware[]; request?: Parameters<typeof delivery> }> = {
    'koa-bodyparser, a byte order mark lost': {
      before: [bodyParser()],
      request: [`\ufeff${json}`, asForm],
    },
    'koa-bodyparser, invalid bytes replaced': {
      before: [bodyParser()],
      request: [Buffer.from([0x61, 0x3d, 0xff, 0xfe]), asForm],
    },
    'a parser that keeps only what it has parsed': {
      before: [
        async (ctx, next) => {
          let text = ''
          for await (const chunk of ctx.req) text += chunk
          Reflect.set(ctx.request, 'body', JSON.parse(text))
          await next()
        },
      ],
    },
    'somebody who keeps nothing': {
      before: [
        async (ctx, next) => {
          for await (const _chunk of ctx.req);
          await next()
        },
      ],
    },
  }

  test.each(Object.entries(gone))(
    'a 500 that names the fix, without a run: %s',
    async (_, { before, request = [json] }) => {
      const { app, store } = reading(before)
      const server = await listen(app)
      const response = await server.send(delivery(...request))
      expect([response.status, response.header('webhook-inbox-status')]).toEqual([500, 'refused'])
      expect(JSON.parse(response.text)).toMatchObject({
        code: 'ERR_BODY_CONSUMED',
        detail: expect.stringContaining('before whatever reads the body'),
      })
      expect(store.calls).toEqual([])
    },
  )

  test('chunked text is not trusted: nothing says that it is whole', async () => {
    const { app } = reading([bodyParser()])
    const server = await listen(app)
    const { 'content-length': _, ...headers } = delivery(json).headers
    const wire = await server.wire()
    await wire.send(headOf({ headers: { ...headers, 'transfer-encoding': 'chunked' } }))
    await wire.send(`${Buffer.byteLength(json).toString(16)}\r\n${json}\r\n0\r\n\r\n`)
    expect((await wire.response()).status).toBe(500)
  })

  test('koa-bodyparser after us leaves what is there, readable or not', async () => {
    const { app } = reading([], [bodyParser()])
    const server = await listen(app)
    for (const [body, payload] of [
      [json, JSON.parse(json)],
      ['not json', 'unreadable'],
      ['"scalar"', 'scalar'],
    ] as const) {
      const response = await server.send(delivery(body))
      expect([response.status, JSON.parse(response.text)]).toEqual([200, seen(body, payload)])
    }
  })

  test('are joined at every split of a multi-byte body', async () => {
    const { app } = reading()
    const server = await listen(app)
    const wire = await server.wire()
    for (let cut = 0; cut <= Buffer.byteLength(json); cut += 1) {
      const bytes = bytesOf(delivery(json))
      const at = bytes.length - Buffer.byteLength(json) + cut
      await wire.send(bytes.subarray(0, at))
      await wire.send(bytes.subarray(at))
      expect(JSON.parse((await wire.response()).text)).toEqual(seen(json))
    }
  })

  test('of exactly the limit run, of one byte more do not', async () => {
    const { app } = reading([], [], json.length)
    const server = await listen(app)
    const long = 'x'.repeat(json.length)
    expect((await server.send(delivery(long))).status).toBe(200)
    expect((await server.send(delivery(`${long}x`))).status).toBe(413)
  })
})
