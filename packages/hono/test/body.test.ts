import { createHmac } from 'node:crypto'
import { memoryStore } from '@webhook-inbox/core'
import { githubWebhook } from '@webhook-inbox/hono'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { validator } from 'hono/validator'
import { describe, expect, it } from 'vitest'
import { connect, gate, listen, recorder, secret, signed, wire } from './support.ts'

const path = '/webhooks/github'
const json = '{"zen":"Speak like a human ☕"}'
const form = { 'content-type': 'application/x-www-form-urlencoded' }

/** An app whose first middleware reads the body in its own way. */
function readBefore(read: (c: Context) => unknown): { app: Hono; runs: string[] } {
  const runs: string[] = []
  const app = new Hono()
  app.use(async (c, next) => {
    await read(c)
    await next()
  })
  app.post(path, githubWebhook({ secret, store: memoryStore() }), (c) => {
    runs.push(new TextDecoder().decode(c.get('webhook').rawBody))
    return c.text('ran')
  })
  return { app, runs }
}

describe('a body that was read before', () => {
  it.each<[string, (c: Context) => unknown, string, Record<string, string>]>([
    ['c.req.json()', (c) => c.req.json(), json, {}],
    ['c.req.text()', (c) => c.req.text(), json, {}],
    ['c.req.text(), not awaited', (c) => void c.req.text(), json, {}],
    ['c.req.arrayBuffer()', (c) => c.req.arrayBuffer(), json, {}],
    ['c.req.blob()', (c) => c.req.blob(), json, {}],
    ['c.req.parseBody()', (c) => c.req.parseBody(), `payload=${encodeURIComponent(json)}`, form],
    ['c.req.raw.clone().text()', (c) => c.req.raw.clone().text(), json, {}],
    ['nothing at all', () => {}, json, {}],
  ])('by %s is had all the same', async (_, read, body, headers) => {
    const { app, runs } = readBefore(read)
    const { url } = await listen(app)
    const response = await fetch(url + path, signed(body, headers))
    expect([response.status, await response.text(), runs]).toEqual([200, 'ran', [body]])
  })

  it.each<[string, (c: Context) => unknown, string | Uint8Array<ArrayBuffer>]>([
    ['c.req.formData()', (c) => c.req.formData(), `payload=${encodeURIComponent(json)}`],
    ['c.req.raw.text()', (c) => c.req.raw.text(), json],
    ['c.req.raw.json()', (c) => c.req.raw.json(), json],
    ['a reader that still holds it', (c) => void c.req.raw.body?.getReader(), json],
    ['c.req.text(), a byte order mark lost', (c) => c.req.text(), `\ufeff${json}`],
    [
      'c.req.text(), invalid bytes replaced',
      (c) => c.req.text(),
      new Uint8Array([0x22, 0xff, 0xfe, 0x22]),
    ],
  ])('by %s is a 500 that names the fix, without a run', async (_, read, body) => {
    const { app, runs } = readBefore(read)
    const { url } = await listen(app)
    const response = await fetch(url + path, signed(body, form))
    expect([response.status, response.headers.get('webhook-inbox-status')]).toEqual([
      500,
      'refused',
    ])
    expect(await response.json()).toMatchObject({
      code: 'ERR_BODY_CONSUMED',
      detail: expect.stringContaining('before whatever reads the body'),
    })
    expect(runs).toEqual([])
  })

  it('as text is not trusted when no length says that it is whole', async () => {
    const { app, runs } = readBefore((c) => c.req.text())
    const response = await app.request(path, signed(json))
    expect([response.status, runs]).toEqual([500, []])
  })

  it('is limited all the same', async () => {
    const app = new Hono()
    app.use(async (c, next) => {
      await c.req.arrayBuffer()
      await next()
    })
    app.post(path, githubWebhook({ secret, store: memoryStore(), maxBodyBytes: 4 }), (c) =>
      c.text('ran'),
    )
    expect((await app.request(path, signed('12345'))).status).toBe(413)
    expect((await app.request(path, signed('1234'))).status).toBe(200)
  })

  it("passes Hono's own validator and body limit", async () => {
    const app = new Hono()
    app.post(
      path,
      bodyLimit({ maxSize: 1000 }),
      validator('form', (value) => value),
      githubWebhook({ secret, store: memoryStore() }),
      (c) => c.json(c.get('webhook').payload ?? null),
    )
    const { url } = await listen(app)
    const body = `payload=${encodeURIComponent(json)}`
    const response = await fetch(url + path, signed(body, form))
    expect(await response.json()).toEqual(JSON.parse(json))
    const chunked = new Response(body).body
    if (chunked === null) throw new Error('no stream')
    const { headers } = signed(body, form)
    const init = { method: 'POST', headers, body: chunked, duplex: 'half' } as const
    expect(await (await fetch(url + path, init)).json()).toEqual(JSON.parse(json))
  })
})

describe('a body after us', () => {
  it.each<[string, (c: Context) => unknown, unknown]>([
    ['c.req.json()', (c) => c.req.json(), JSON.parse(json)],
    ['c.req.text()', (c) => c.req.text(), json],
    ['c.req.arrayBuffer()', async (c) => decode(await c.req.arrayBuffer()), json],
    ['c.req.blob()', async (c) => (await c.req.blob()).text(), json],
    ['c.req.raw.json()', (c) => c.req.raw.json(), JSON.parse(json)],
    ['c.req.raw.text()', (c) => c.req.raw.text(), json],
    ['c.req.raw.clone().text()', (c) => c.req.raw.clone().text(), json],
    ['new Request(c.req.raw)', (c) => new Request(c.req.raw).text(), json],
    ['c.req.raw.body', (c) => new Response(c.req.raw.body).text(), json],
    [
      'all of them',
      async (c) => [await c.req.json(), await c.req.raw.text()],
      [JSON.parse(json), json],
    ],
    ['its headers', (c) => c.req.raw.headers.get('x-github-event'), 'push'],
  ])('%s works', async (_, read, expected) => {
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store: memoryStore() }), async (c) =>
      c.json({ read: await read(c) }),
    )
    const { url } = await listen(app)
    const overSocket = await fetch(url + path, signed(json))
    expect(await overSocket.json()).toEqual({ read: expected })
    const direct = await app.request(path, signed(json))
    expect(await direct.json()).toEqual({ read: expected })
  })

  it('c.req.parseBody() and formData() work', async () => {
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store: memoryStore() }), async (c) => {
      const parsed = await c.req.parseBody()
      return c.json([parsed.payload, (await c.req.formData()).get('payload')])
    })
    const request = signed(`payload=${encodeURIComponent(json)}`, form)
    expect(await (await app.request(path, request)).json()).toEqual([json, json])
  })

  it('is there for middleware that logs what was refused', async () => {
    let logged = ''
    const app = new Hono()
    app.use(async (c, next) => {
      await next()
      logged = await c.req.text()
    })
    app.post(path, githubWebhook({ secret, store: memoryStore() }), (c) => c.text('ran'))
    const response = await app.request(path, { ...signed(json), body: 'forged' })
    expect([response.status, logged]).toEqual([401, 'forged'])
  })
})

describe('bytes', () => {
  it('are joined at every split of a multi-byte body', async () => {
    const { app, runs } = readBefore(() => {})
    const bytes = new TextEncoder().encode(json)
    for (let cut = 0; cut <= bytes.length; cut += 1) {
      const { headers } = signed(json)
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          controller.enqueue(bytes.slice(0, cut))
          controller.enqueue(bytes.slice(cut))
          controller.close()
        },
      })
      const response = await app.request(path, { method: 'POST', headers, body, duplex: 'half' })
      expect(response.status).toBe(200)
    }
    expect(new Set(runs)).toEqual(new Set([json]))
    expect(runs).toHaveLength(bytes.length + 1)
  })

  it.each<[string, Uint8Array<ArrayBuffer>]>([
    ['empty', new Uint8Array()],
    ['a byte order mark', new TextEncoder().encode(`\ufeff${json}`)],
    ['invalid UTF-8', new Uint8Array([0xff, 0xc0, 0x80])],
    ['a scalar', new TextEncoder().encode('null')],
  ])('are signed as they came: %s', async (_, bytes) => {
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store: memoryStore() }), async (c) => {
      expect(new Uint8Array(await c.req.arrayBuffer())).toEqual(bytes)
      return c.body(c.get('webhook').rawBody.slice())
    })
    const { url } = await listen(app)
    const response = await fetch(url + path, signed(bytes))
    expect(response.status).toBe(200)
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes)
  })

  it('are counted to the limit, whatever the length says', async () => {
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store: memoryStore(), maxBodyBytes: 64 }), (c) =>
      c.text('ran'),
    )
    const { url, port } = await listen(app)
    for (const [length, status] of [
      [64, 200],
      [65, 413],
    ] as const) {
      const body = 'x'.repeat(length)
      expect((await app.request(path, signed(body))).status).toBe(status)
      expect((await fetch(url + path, signed(body))).status).toBe(status)
      const connection = connect(port)
      const { headers } = signed(body)
      const head = Object.entries({ host: 'localhost', 'transfer-encoding': 'chunked', ...headers })
      connection.send(
        `POST ${path} HTTP/1.1\r\n${head.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
      )
      connection.send(`${length.toString(16)}\r\n${body}\r\n0\r\n\r\n`)
      expect(await connection.until('\r\n\r\n')).toContain(`HTTP/1.1 ${status} `)
    }
  })

  it('leave the connection usable when they were refused unread', async () => {
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store: memoryStore(), maxBodyBytes: 64 }), (c) =>
      c.text('ran'),
    )
    const { port } = await listen(app)
    const connection = connect(port)
    connection.send(wire(path, signed('x'.repeat(65))))
    await connection.until('HTTP/1.1 413 ')
    connection.send(wire(path, signed('x')))
    await connection.until('ran')
  })

  it('with a content encoding are refused', async () => {
    const { app } = readBefore(() => {})
    const request = signed(json, { 'content-encoding': 'gzip' })
    expect((await app.request(path, request)).status).toBe(415)
  })

  it('that stop short end the request without a claim', async () => {
    const store = memoryStore()
    const { heard, observer } = recorder()
    const started = gate()
    const app = new Hono()
    app.use((_, next) => {
      started.open()
      return next()
    })
    app.post(path, githubWebhook({ secret, store, observer }), (c) => c.text('ran'))
    const { port } = await listen(app)
    const connection = connect(port)
    const request = wire(path, signed(json))
    connection.send(request.subarray(0, request.length - 5))
    await started.opened
    connection.destroy()
    expect(await heard('refused')).toMatchObject({ code: 'body_incomplete' })
    expect((await store.list()).records).toEqual([])
  })

  it('of two endpoints with two secrets, arriving slowly at the same time, stay apart', async () => {
    const app = new Hono()
    const keys = { '/a': 'secret of a', '/b': 'secret of b' }
    for (const [target, key] of Object.entries(keys)) {
      app.post(target, githubWebhook({ secret: key, store: memoryStore() }), (c) =>
        c.json([target, c.get('webhook').payload ?? null]),
      )
    }
    const { port } = await listen(app)
    const connections = Object.entries(keys).map(([target, key]) => {
      const body = JSON.stringify({ target })
      const signature = createHmac('sha256', key).update(body).digest('hex')
      const request = signed(body, { 'x-hub-signature-256': `sha256=${signature}` })
      return { target, connection: connect(port), bytes: wire(target, request) }
    })
    const longest = Math.max(...connections.map(({ bytes }) => bytes.length))
    for (let at = 0; at < longest; at += 16) {
      for (const { connection, bytes } of connections) connection.send(bytes.subarray(at, at + 16))
      await new Promise((resolve) => setImmediate(resolve))
    }
    for (const { target, connection } of connections) {
      expect(await connection.until(']')).toContain(`["${target}",{"target":"${target}"}]`)
    }
  })
})

function decode(bytes: ArrayBuffer): string {
  return new TextDecoder().decode(bytes)
}
