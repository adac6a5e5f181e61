import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import type { BodyResult } from '@webhook-inbox/core'
import {
  captureRawBody,
  githubWebhook,
  type NodeWebhookOptions,
  readNodeBody,
} from '@webhook-inbox/node'
import { afterEach, describe, expect, test } from 'vitest'
import {
  bytesOf,
  delivery,
  gate,
  headOf,
  type SignedRequest,
  secret,
  serve,
  type TestServer,
  watchedStore,
} from './support.ts'

const servers: TestServer[] = []

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

async function start(listener: Parameters<typeof serve>[0]): Promise<TestServer> {
  const server = await serve(listener)
  servers.push(server)
  return server
}

/** A guarded server that answers with the bytes that the handler got. */
async function echo(options: Partial<NodeWebhookOptions> = {}) {
  const store = watchedStore()
  const guard = githubWebhook({ secret, store, ...options } as NodeWebhookOptions)
  const payloads: unknown[] = []
  const server = await start((req, res) =>
    guard(req, res, () => {
      payloads.push(req.webhook?.payload)
      res.end(req.webhook?.rawBody)
    }),
  )
  return { store, server, payloads }
}

/** The request as chunks of a chunked body, without a length. */
function chunked(request: SignedRequest, parts: readonly Uint8Array[]): Buffer {
  const { 'content-length': _, ...headers } = request.headers
  const head = headOf({ headers: { ...headers, 'transfer-encoding': 'chunked' } })
  const body = parts
    .filter((part) => part.length > 0)
    .flatMap((part) => [`${part.length.toString(16)}\r\n`, part, '\r\n'])
  return Buffer.concat([head, ...body, '0\r\n\r\n'].map((part) => Buffer.from(part)))
}

describe('the bytes arrive as they were sent', () => {
  const text = '{"emoji":"🎉 é","zh":"漢字"}'

  test('at every split of a chunked body', async () => {
    const { server, payloads } = await echo()
    const wire = await server.wire()
    const length = Buffer.byteLength(text)
    for (let cut = 0; cut <= length; cut += 1) {
      const request = delivery(text)
      await wire.send(chunked(request, [request.body.subarray(0, cut), request.body.subarray(cut)]))
      expect((await wire.response()).text).toBe(text)
    }
    expect(payloads).toHaveLength(length + 1)
    for (const payload of payloads) expect(payload).toEqual(JSON.parse(text))
  })

  test('at every split over the wire', async () => {
    const { server, store } = await echo()
    const wire = await server.wire()
    const other = await server.wire()
    for (let cut = 1; cut < Buffer.byteLength(text); cut += 1) {
      const request = delivery(text)
      const whole = bytesOf(request)
      const at = whole.length - request.body.length + cut
      await wire.send(whole.subarray(0, at))
      // The first part is with the server before the second one leaves.
      await other.send(bytesOf(delivery('{}', {}, 'another secret')))
      expect((await other.response()).status).toBe(401)
      await wire.send(whole.subarray(at))
      expect((await wire.response()).text).toBe(text)
    }
    expect(store.calls.filter((name) => name === 'complete')).toHaveLength(
      Buffer.byteLength(text) - 1,
    )
  })

  test('one byte at a time', async () => {
    const { server } = await echo()
    const request = delivery(text)
    const wire = await server.wire()
    await wire.send(
      chunked(
        request,
        [...request.body].map((byte) => Uint8Array.of(byte)),
      ),
    )
    expect((await wire.response()).text).toBe(text)
  })

  const odd: Record<string, { bytes: Uint8Array | string; payload: unknown }> = {
    'a byte order mark': { bytes: '\uFEFF{"a":1}', payload: { a: 1 } },
    'invalid UTF-8': { bytes: Uint8Array.of(0x7b, 0xff, 0x7d), payload: undefined },
    'no byte at all': { bytes: '', payload: undefined },
    'a scalar': { bytes: '7', payload: 7 },
    null: { bytes: 'null', payload: null },
  }
  for (const [name, { bytes, payload }] of Object.entries(odd)) {
    test(`${name} reaches the handler untouched`, async () => {
      const { server, payloads } = await echo()
      const response = await server.send(delivery(bytes))
      expect([response.status, response.body.equals(Buffer.from(bytes))]).toEqual([200, true])
      expect(payloads).toEqual([payload])
    })
  }

  test('two endpoints with two secrets and bodies that arrive in turns', async () => {
    const store = watchedStore()
    const guards = {
      '/a': githubWebhook({ secret: 'secret a', store, endpoint: 'a' }),
      '/b': githubWebhook({ secret: 'secret b', store, endpoint: 'b' }),
    }
    const server = await start((req, res) => {
      guards[req.url === '/a' ? '/a' : '/b'](req, res, () => res.end(req.webhook?.rawBody))
    })
    const a = delivery(`{"a":"${'é'.repeat(40)}"}`, { 'x-github-delivery': 'same' }, 'secret a')
    const b = delivery(`{"b":"${'ü'.repeat(40)}"}`, { 'x-github-delivery': 'same' }, 'secret b')
    const [wireA, wireB] = [await server.wire(), await server.wire()]
    await wireA.send(headOf(a, '/a'))
    await wireB.send(headOf(b, '/b'))
    for (let at = 0; at < a.body.length; at += 7) {
      await wireA.send(a.body.subarray(at, at + 7))
      await wireB.send(b.body.subarray(at, at + 7))
    }
    const [answerA, answerB] = [await wireA.response(), await wireB.response()]
    expect([answerA.text, answerB.text]).toEqual([a.body.toString(), b.body.toString()])
    expect((await server.send(a, '/b')).status).toBe(401)
  })
})

describe('limits and lies', () => {
  const body = `{"a":"${'x'.repeat(92)}"}`

  test('the exact limit passes, one byte more is 413, with and without a length', async () => {
    expect(body).toHaveLength(100)
    for (const [maxBodyBytes, status] of [
      [100, 200],
      [99, 413],
    ] as const) {
      const { server, store } = await echo({ maxBodyBytes })
      expect((await server.send(delivery(body))).status).toBe(status)
      const wire = await server.wire()
      const request = delivery(body)
      await wire.send(chunked(request, [request.body.subarray(0, 50), request.body.subarray(50)]))
      expect((await wire.response()).status).toBe(status)
      expect(store.calls.includes('claim')).toBe(status === 200)
    }
  })

  test('an endless body is cut at the limit, and its sender reads the answer', async () => {
    const { server } = await echo({ maxBodyBytes: 1000 })
    const { 'content-length': _, ...headers } = delivery().headers
    const wire = await server.wire()
    await wire.send(headOf({ headers: { ...headers, 'transfer-encoding': 'chunked' } }))
    let answered = false
    const answer = wire.response().finally(() => {
      answered = true
    })
    while (!answered) await wire.send(`3e8\r\n${'x'.repeat(1000)}\r\n`)
    const response = await answer
    expect([response.status, response.header('connection')]).toEqual([413, 'close'])
    expect(response.text).toContain('body_too_large')
    await wire.closed
  })

  test('a length that is too long ends with the connection, without a claim', async () => {
    const { server, store } = await echo()
    const request = delivery('{}', { 'content-length': '10' })
    const wire = await server.wire()
    await wire.send(bytesOf(request))
    wire.socket.end()
    await wire.closed
    expect((await server.send(delivery())).status).toBe(200)
    expect(await store.get(request.key)).toBeUndefined()
  })

  test('a length that is too short is another body: 401', async () => {
    const { server, store } = await echo()
    const request = delivery('{"a":1}', { 'content-length': '6' })
    const wire = await server.wire()
    await wire.send(bytesOf(request))
    // Node itself answers 400 when the byte that is left over comes before the 401.
    expect([400, 401]).toContain((await wire.response()).status)
    expect(await store.get(request.key)).toBeUndefined()
  })

  test('a content encoding is 415 before anything is read', async () => {
    const { server, store } = await echo()
    for (const encoding of ['gzip', 'br', 'GZIP', 'gzip, identity']) {
      const response = await server.send(delivery('{}', { 'content-encoding': encoding }))
      expect(response.status).toBe(415)
    }
    expect((await server.send(delivery('{}', { 'content-encoding': 'identity' }))).status).toBe(200)
    expect(store.calls.filter((name) => name === 'claim')).toHaveLength(1)
  })

  test('a refusal of a large body is read by its sender, and the connection closes', async () => {
    const { server } = await echo()
    const large = delivery('x'.repeat(4_000_000), { 'x-hub-signature-256': '' })
    const wire = await server.wire()
    const sent = wire.send(bytesOf(large)).catch(() => {})
    const response = await wire.response()
    expect([response.status, response.header('connection')]).toEqual([401, 'close'])
    await sent
    await wire.closed
  })

  test('after a body over the limit the connection closes or serves the next request', async () => {
    const { server } = await echo({ maxBodyBytes: 10 })
    for (const size of [1000, 20_000, 60_000, 100_000, 300_000]) {
      const request = delivery('x'.repeat(size))
      const wire = await server.wire()
      await wire.send(chunked(request, [request.body.subarray(0, 100), request.body.subarray(100)]))
      const refused = await wire.response()
      expect(refused.status).toBe(413)
      if (refused.header('connection') === 'close') {
        await wire.closed
        continue
      }
      await wire.send(bytesOf(delivery('{}')))
      expect((await wire.response()).status).toBe(200)
    }
  })

  test('a refusal of a body that is there leaves the connection usable', async () => {
    const { server } = await echo()
    const wire = await server.wire()
    for (let round = 0; round < 3; round += 1) {
      await wire.send(bytesOf(delivery('{}', {}, 'another secret')))
      expect((await wire.response()).status).toBe(401)
    }
    await wire.send(bytesOf(delivery('{}')))
    expect((await wire.response()).status).toBe(200)
  })
})

describe('a sender that goes away', () => {
  test('in the head, in the body, after the body: no crash, and no claim before all is there', async () => {
    const { server, store } = await echo()
    const request = delivery('{"a":"é"}')
    const whole = bytesOf(request)
    const bodyAt = whole.length - request.body.length
    for (const at of [1, 40, bodyAt - 2, bodyAt, bodyAt + 1, whole.length - 1]) {
      for (const leave of ['destroy', 'resetAndDestroy'] as const) {
        const wire = await server.wire()
        await wire.send(whole.subarray(0, at))
        wire.socket[leave]()
        await wire.closed
      }
    }
    expect((await server.send(delivery())).status).toBe(200)
    expect(await store.get(request.key)).toBeUndefined()
    const wire = await server.wire()
    await wire.send(whole)
    wire.destroy()
    expect((await store.settled(request.key)).state).toBe('completed')
  })

  test('while the claim is asked for: the handler runs all the same', async () => {
    const { server, store } = await echo()
    const claim = store.claim
    const asked = gate()
    const goOn = gate()
    store.claim = async (entries) => {
      asked.open()
      await goOn.opened
      return claim(entries)
    }
    const request = delivery()
    const left = new Promise((resolve) =>
      server.server.once('request', (_, res) => res.once('close', resolve)),
    )
    const wire = await server.wire()
    await wire.send(bytesOf(request))
    await asked.opened
    wire.destroy()
    await left
    goOn.open()
    expect((await store.settled(request.key)).state).toBe('completed')
  })

  test('readNodeBody tells an aborted body from a whole one', async () => {
    const results: Promise<BodyResult>[] = []
    const reading = gate()
    const server = await start((req) => {
      results.push(readNodeBody(req, 1000))
      reading.open()
    })
    const wire = await server.wire()
    const request = delivery('{"a":1}')
    await wire.send(headOf(request))
    await reading.opened
    await wire.send('{"a"')
    wire.destroy()
    expect(await results[0]).toEqual({ ok: false, code: 'body_incomplete' })
  })

  test('readNodeBody on a request that closes without a word', async () => {
    // As the requests of injectors and serverless adapters do.
    const req = new IncomingMessage(new Socket())
    req._destroy = (error, done) => done(error)
    const result = readNodeBody(req, 1000)
    req.push('{"a"')
    req.destroy()
    expect(await result).toEqual({ ok: false, code: 'body_incomplete' })
  })

  test('readNodeBody after the abort', async () => {
    const results: Promise<BodyResult>[] = []
    const running = gate()
    const done = gate()
    const server = await start(async (req) => {
      running.open()
      await new Promise((resolve) => req.once('close', resolve))
      results.push(readNodeBody(req, 1000))
      done.open()
    })
    const wire = await server.wire()
    await wire.send(headOf(delivery('{"a":1}')))
    await running.opened
    wire.destroy()
    await done.opened
    expect(await results[0]).toEqual({ ok: false, code: 'body_incomplete' })
  })
})

describe('a stream that others have touched', () => {
  const text = '{"a":"é"}'

  /** What is read after `touch` has had the request first. */
  async function after(
    touch: (req: IncomingMessage) => unknown,
    body: string = text,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    let result: BodyResult | undefined
    const server = await start(async (req, res) => {
      // A listener that is there in the same turn hears everything; one turn later the stream has begun.
      const touching = touch(req)
      if (touching instanceof Promise) await touching
      result = await readNodeBody(req, 100_000)
      res.end()
    })
    await server.send(delivery(body, headers))
    if (result === undefined) throw new Error('Nothing was read.')
    return result.ok ? Buffer.from(result.bytes).toString() : result.code
  }

  const consumed = 'ERR_BODY_CONSUMED'
  const drained = async (req: IncomingMessage): Promise<Buffer> => buffer(req)

  test('not read at all', async () => {
    expect(await after(() => {})).toBe(text)
  })

  test('paused', async () => {
    expect(await after((req) => req.pause())).toBe(text)
  })

  test('heard by another listener at the same time', async () => {
    const heard: Buffer[] = []
    expect(await after((req) => void req.on('data', (chunk) => heard.push(chunk)))).toBe(text)
    expect(Buffer.concat(heard).toString()).toBe(text)
  })

  test('piped into something that nobody reads', async () => {
    const large = 'x'.repeat(90_000)
    expect(await after((req) => void req.pipe(new PassThrough({ highWaterMark: 1 })), large)).toBe(
      large,
    )
  })

  test('paused by somebody while it is read', async () => {
    expect(await after((req) => void req.once('data', () => req.pause()), 'x'.repeat(90_000))).toBe(
      'x'.repeat(90_000),
    )
  })

  const touched: Record<string, (req: IncomingMessage) => unknown> = {
    'read to its end': drained,
    'read in part': (req) =>
      new Promise<void>((resolve) =>
        req.once('data', () => {
          req.pause()
          resolve()
        }),
      ),
    "with a 'readable' listener": (req) => void req.on('readable', () => {}),
    'with an encoding': (req) => void req.setEncoding('utf8'),
    'parsed into an object': async (req) => {
      Object.assign(req, { body: JSON.parse((await drained(req)).toString()) })
    },
    'decoded by another charset': async (req) => {
      Object.assign(req, { body: (await drained(req)).toString('latin1') })
    },
  }
  for (const [name, touch] of Object.entries(touched)) {
    test(`${name}: consumed`, async () => {
      expect(await after(touch)).toBe(consumed)
    })
  }

  const kept: Record<string, (req: IncomingMessage) => unknown> = {
    'rawBody bytes': async (req) =>
      Object.assign(req, { rawBody: await drained(req), body: { a: 'é' } }),
    'what captureRawBody kept': async (req) =>
      Reflect.apply(captureRawBody, undefined, [req, undefined, await drained(req)]),
    'body as bytes': async (req) => Object.assign(req, { body: await drained(req) }),
    'body as a plain Uint8Array': async (req) =>
      Object.assign(req, { body: Uint8Array.from(await drained(req)) }),
    'rawBody as loss-free text': async (req) =>
      Object.assign(req, { rawBody: (await drained(req)).toString() }),
    'body as loss-free text': async (req) =>
      Object.assign(req, { body: (await drained(req)).toString() }),
  }
  for (const [name, touch] of Object.entries(kept)) {
    test(`${name}: right`, async () => {
      expect(await after(touch)).toBe(text)
    })
  }

  test('text with a replacement character, or without a length to compare, is not taken', async () => {
    const asText = async (req: IncomingMessage): Promise<void> => {
      Object.assign(req, { body: (await drained(req)).toString() })
    }
    expect(await after(asText, '{"a":"\uFFFD"}')).toBe(consumed)
    let result: BodyResult | undefined
    const server = await start(async (req, res) => {
      await asText(req)
      result = await readNodeBody(req, 1000)
      res.end()
    })
    const wire = await server.wire()
    const request = delivery(text)
    await wire.send(chunked(request, [request.body]))
    await wire.response()
    expect(result).toEqual({ ok: false, code: consumed })
  })

  test('an empty body that was read is the empty body', async () => {
    expect(await after(drained, '')).toBe('')
  })

  test('bytes that were kept obey the limit', async () => {
    const { server } = await echo({ maxBodyBytes: 5 })
    expect((await server.send(delivery(text))).status).toBe(413)
    let result: BodyResult | undefined
    const other = await start(async (req, res) => {
      Object.assign(req, { rawBody: await drained(req) })
      result = await readNodeBody(req, 5)
      res.end()
    })
    await other.send(delivery(text))
    expect(result).toEqual({ ok: false, code: 'body_too_large' })
  })
})
