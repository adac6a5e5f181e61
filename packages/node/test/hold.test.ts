import { once } from 'node:events'
import {
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { PassThrough, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { githubWebhook, type NodeWebhookOptions } from '@webhook-inbox/node'
import { afterEach, describe, expect, test } from 'vitest'
import {
  bytesOf,
  delivery,
  type Gate,
  gate,
  recorder,
  type SignedRequest,
  secret,
  serve,
  type TestServer,
  type WatchedStore,
  type Wire,
  type WireResponse,
  watchedStore,
} from './support.ts'

type Route = (req: IncomingMessage, res: ServerResponse) => unknown

const servers: TestServer[] = []

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

async function start(listener: RequestListener): Promise<TestServer> {
  const server = await serve(listener)
  servers.push(server)
  return server
}

/** A server whose only route is guarded. */
async function guarded(
  store: WatchedStore,
  route: Route,
  options: Partial<NodeWebhookOptions> = {},
): Promise<TestServer> {
  const guard = githubWebhook({ secret, store, ...options } as NodeWebhookOptions)
  return start((req, res) => guard(req, res, () => route(req, res)))
}

// A refusal on a second connection takes a whole round trip through the same process: what the first connection was
// to get would have arrived by then.
async function nothingArrives(server: TestServer, wire: Wire, before = 0): Promise<void> {
  const refused = await server.send(delivery('{}', {}, 'another secret'))
  expect(refused.status).toBe(401)
  expect(wire.received().subarray(before).toString()).toBe('')
}

/** Runs a route with the settlement held back; expects silence until it is let go. */
async function heldBack(
  route: Route,
  request: SignedRequest = delivery(),
): Promise<{ response: WireResponse; state: string; store: WatchedStore; wire: Wire }> {
  const store = watchedStore()
  const server = await guarded(store, route)
  const held = store.holdSettlements()
  const wire = await server.wire()
  await wire.send(bytesOf(request))
  await store.settling()
  await nothingArrives(server, wire)
  held.open()
  const response = await wire.response()
  const { state } = await store.settled(request.key)
  return { response, state, store, wire }
}

describe('not one byte of the answer leaves before the delivery is settled', () => {
  const routes: Record<string, { route: Route; status?: number; text?: string; state?: string }> = {
    'end with a text': { route: (_, res) => res.end('hello') },
    'end with bytes': { route: (_, res) => res.end(Buffer.from('hello')) },
    'end with an encoding': { route: (_, res) => res.end('68656c6c6f', 'hex') },
    'end without a body': { route: (_, res) => res.end(), text: '' },
    'writeHead and end': {
      route: (_, res) => res.writeHead(201, { 'content-length': 5 }).end('hello'),
      status: 201,
    },
    'writeHead, write, end': {
      route(_, res) {
        res.writeHead(202)
        res.write('hel')
        res.write('bG8=', 'base64')
        res.end()
      },
      status: 202,
    },
    'content-length, write, end': {
      route(_, res) {
        res.setHeader('content-length', 5)
        res.write('hello')
        res.end()
      },
    },
    'flushHeaders, later the body': {
      route(_, res) {
        res.flushHeaders()
        setImmediate(() => res.end('hello'))
      },
    },
    'a write whose callback ends': { route: (_, res) => res.write('hel', () => res.end('lo')) },
    'a corked response': {
      route(_, res) {
        res.cork()
        res.write('hel')
        res.write('lo')
        res.end()
        res.uncork()
      },
    },
    'a piped stream': { route: (_, res) => Readable.from(['hel', 'lo']).pipe(res) },
    'a pipeline': { route: (_, res) => pipeline(Readable.from(['hel', 'lo']), res) },
    'a late handler': { route: (_, res) => setTimeout(() => res.end('hello'), 5) },
    'status 500': {
      route(_, res) {
        res.statusCode = 500
        res.end('hello')
      },
      status: 500,
      state: 'failed',
    },
    'status 422': {
      route: (_, res) => res.writeHead(422).end('hello'),
      status: 422,
      state: 'dead',
    },
    'status 204': { route: (_, res) => res.writeHead(204).end(), status: 204, text: '' },
    'status 304': { route: (_, res) => res.writeHead(304).end(), status: 304, text: '' },
  }
  for (const [name, { route, status = 200, text = 'hello', state = 'completed' }] of Object.entries(
    routes,
  )) {
    test(name, async () => {
      const { response, ...settled } = await heldBack(route)
      expect({ status: response.status, text: response.text, state: settled.state }).toEqual({
        status,
        text,
        state,
      })
      expect(response.header('webhook-inbox-status')).toBe(state)
    })
  }

  test('pipelined requests, each answer after its own settlement and in order, without a warning', async () => {
    const store = watchedStore()
    const bodies: string[] = []
    const server = await guarded(store, (req, res) => {
      bodies.push(String(req.webhook?.id))
      res.end(req.webhook?.id)
    })
    const held = store.holdSettlements()
    const requests = Array.from({ length: 20 }, () => delivery())
    const warnings: string[] = []
    const warned = (warning: Error): void => void warnings.push(warning.name)
    process.on('warning', warned)
    const wire = await server.wire()
    await wire.send(Buffer.concat(requests.map((request) => bytesOf(request))))
    await store.settling(requests.length)
    await nothingArrives(server, wire)
    held.open()
    for (const { id } of requests) {
      const answer = await wire.response()
      expect([answer.text, answer.header('webhook-inbox-status')]).toEqual([id, 'completed'])
    }
    process.off('warning', warned)
    expect(warnings).toEqual([])
  })

  test('the next request of a kept-alive connection', async () => {
    const store = watchedStore()
    const server = await guarded(store, (req, res) => res.end(req.webhook?.id))
    const wire = await server.wire()
    const first = delivery()
    await wire.send(bytesOf(first))
    expect((await wire.response()).text).toBe(first.id)
    const before = wire.received().length
    const held = store.holdSettlements()
    const second = delivery()
    await wire.send(bytesOf(second))
    await store.settling(2)
    await nothingArrives(server, wire, before)
    held.open()
    expect((await wire.response()).text).toBe(second.id)
  })
})

describe('a held response looks sent', () => {
  /** What a route sees after it has answered and before anything was sent. */
  async function seen<Value>(
    look: (res: ServerResponse, req: IncomingMessage) => Value | Promise<Value>,
    answer: (res: ServerResponse) => void = (res) => res.end('hello'),
  ): Promise<{ value: Value; response: WireResponse }> {
    let value: Promise<Value> | undefined
    const { response } = await heldBack((req, res) => {
      answer(res)
      value = (async () => look(res, req))()
    })
    if (value === undefined) throw new Error('The route did not run.')
    return { value: await value, response }
  }

  test('in its properties', async () => {
    const { value } = await seen((res) => ({
      headersSent: res.headersSent,
      writableEnded: res.writableEnded,
      finished: res.finished,
      writableFinished: res.writableFinished,
      head: Reflect.get(res, '_header') !== null,
    }))
    expect(value).toEqual({
      headersSent: true,
      writableEnded: true,
      finished: true,
      writableFinished: false,
      head: true,
    })
  })

  test('after writeHead, flushHeaders and write it has its head and no end', async () => {
    const answers: ((res: ServerResponse) => void)[] = [
      (res) => res.writeHead(200),
      (res) => res.flushHeaders(),
      (res) => res.write('hello'),
    ]
    for (const answer of answers) {
      const { value } = await seen((res) => {
        const state = [res.headersSent, res.writableEnded, res.writableLength > 0]
        res.end()
        return state
      }, answer)
      expect(value.slice(0, 2)).toEqual([true, false])
    }
  })

  const late: Record<string, (res: ServerResponse) => unknown> = {
    setHeader: (res) => res.setHeader('x-late', '1'),
    setHeaders: (res) => res.setHeaders(new Map([['x-late', '1']])),
    appendHeader: (res) => res.appendHeader('x-late', '1'),
    removeHeader: (res) => res.removeHeader('content-type'),
    writeHead: (res) => res.writeHead(500),
  }
  for (const [name, call] of Object.entries(late)) {
    test(`${name} throws what Node throws`, async () => {
      const { value, response } = await seen((res) => {
        try {
          call(res)
        } catch (error) {
          return Reflect.get(Object(error), 'code')
        }
      })
      expect(value).toBe('ERR_HTTP_HEADERS_SENT')
      expect(response.status).toBe(200)
      expect(response.header('x-late')).toBeUndefined()
    })
  }

  test('a late status, flushHeaders and trailers change nothing', async () => {
    const { response } = await seen((res) => {
      res.statusCode = 500
      res.statusMessage = 'Late'
      res.flushHeaders()
      res.addTrailers({ 'x-late': '1' })
    })
    expect([response.status, response.message, response.text]).toEqual([200, 'OK', 'hello'])
  })

  test('a late write fails as Node says, in its callback and as an event', async () => {
    const { value, response } = await seen(async (res) => {
      const errored = once(res, 'error')
      const called = new Promise((resolve) => res.write('late', resolve))
      return [await called, ...(await errored)].map((error) => Reflect.get(Object(error), 'code'))
    })
    expect(value).toEqual(['ERR_STREAM_WRITE_AFTER_END', 'ERR_STREAM_WRITE_AFTER_END'])
    expect(response.text).toBe('hello')
  })

  test('a second end sends nothing and does not settle again', async () => {
    const { response, store } = await heldBack((_, res) => {
      res.end('hello')
      res.end()
    })
    expect(response.text).toBe('hello')
    expect(store.calls.filter((name) => name === 'complete')).toHaveLength(1)
  })

  test('a second end with a body fails as Node says', async () => {
    const { value, response } = await seen(async (res) => {
      const errored = once(res, 'error')
      res.end('again')
      const [error] = await errored
      return Reflect.get(Object(error), 'code')
    })
    expect(value).toBe('ERR_STREAM_WRITE_AFTER_END')
    expect(response.text).toBe('hello')
  })

  test('what comes long after the answer fails without an event, as on a response that is closed', async () => {
    const store = watchedStore()
    const events: unknown[] = []
    const wrote = gate()
    const ended = gate()
    let code: unknown
    const server = await guarded(store, async (_, res) => {
      res.on('error', (error) => events.push(error))
      res.end('hello')
      await new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
      res.end(ended.open)
      res.end('late')
      res.write('late', (error) => {
        code = Reflect.get(Object(error), 'code')
        wrote.open()
      })
    })
    const held = store.holdSettlements()
    const request = delivery()
    const answer = server.send(request)
    await wrote.opened
    held.open()
    expect((await answer).text).toBe('hello')
    await ended.opened
    expect([events, code]).toEqual([[], 'ERR_STREAM_WRITE_AFTER_END'])
  })

  test('wrong arguments fail where Node would fail', async () => {
    const store = watchedStore()
    const codes: unknown[] = []
    const server = await guarded(store, (_, res) => {
      const calls = [
        () => res.writeHead(99),
        () => res.writeHead(200, 'line\nbreak'),
        () => res.writeHead(200, { 'x-a': 'line\nbreak' }),
        () => Reflect.apply(res.write, res, [null]),
        () => Reflect.apply(res.write, res, [{}]),
        () => Reflect.apply(res.end, res, [{}]),
      ]
      for (const call of calls) {
        try {
          call()
          codes.push(undefined)
        } catch (error) {
          codes.push(Reflect.get(Object(error), 'code'))
        }
      }
      res.end('hello')
    })
    const response = await server.send(delivery())
    expect(codes).toEqual([
      'ERR_HTTP_INVALID_STATUS_CODE',
      'ERR_INVALID_CHAR',
      'ERR_INVALID_CHAR',
      'ERR_STREAM_NULL_VALUES',
      'ERR_INVALID_ARG_TYPE',
      'ERR_INVALID_ARG_TYPE',
    ])
    expect([response.status, response.text]).toEqual([200, 'hello'])
  })

  test('the callback of end comes after the settlement and the methods are Node’s again', async () => {
    const store = watchedStore()
    const own = gate()
    let names: string[] = []
    const server = await guarded(store, (_, res) => {
      res.end('hello', 'utf8', () => {
        names = ['write', 'end', 'writeHead', 'writableFinished', 'destroy'].filter((name) =>
          Object.hasOwn(res, name),
        )
        own.open()
      })
    })
    const held = store.holdSettlements()
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await store.settling()
    let called = false
    own.opened.then(() => {
      called = true
    })
    await nothingArrives(server, wire)
    expect(called).toBe(false)
    held.open()
    await own.opened
    expect(names).toEqual([])
    expect((await wire.response()).text).toBe('hello')
  })
})

describe('what the handler sends is what the sender gets', () => {
  const heads: Record<string, (res: ServerResponse) => void> = {
    'an object': (res) => res.writeHead(200, { 'x-a': '1', 'X-B': ['2', '3'] }),
    'a message and an object': (res) =>
      res.writeHead(200, 'Fine', { 'x-a': '1', 'x-b': ['2', '3'] }),
    'a flat list': (res) => res.writeHead(200, ['x-a', '1', 'x-b', '2', 'x-b', '3']),
    'a list of pairs': (res) =>
      Reflect.apply(res.writeHead, res, [
        200,
        [
          ['x-a', '1'],
          ['x-b', '2'],
          ['x-b', '3'],
        ],
      ]),
  }
  for (const [name, answer] of Object.entries(heads)) {
    test(`writeHead with ${name}`, async () => {
      const server = await guarded(watchedStore(), (_, res) => {
        res.setHeader('x-b', 'replaced')
        res.setHeader('x-c', 'kept')
        answer(res)
        res.end('hello')
      })
      const response = await server.send(delivery())
      const sent = response.headers.filter(([key]) => key.startsWith('x-'))
      expect(new Set(sent.map(String))).toEqual(new Set(['x-a,1', 'x-b,2', 'x-b,3', 'x-c,kept']))
      expect(response.message).toBe(name === 'a message and an object' ? 'Fine' : 'OK')
    })
  }

  test('a length for a body that is sent at once, chunks for one that is written', async () => {
    const server = await guarded(watchedStore(), (req, res) => {
      if (req.headers['x-way'] === 'write') res.write('hel')
      res.end(req.headers['x-way'] === 'write' ? 'lo' : 'hello')
    })
    const whole = await server.send(delivery('{}', { 'x-way': 'end' }))
    const parts = await server.send(delivery('{}', { 'x-way': 'write' }))
    expect(whole.header('content-length')).toBe('5')
    expect([parts.header('transfer-encoding'), parts.text]).toEqual(['chunked', 'hello'])
  })

  test('trailers', async () => {
    const server = await guarded(watchedStore(), (_, res) => {
      res.writeHead(200, { trailer: 'x-sum' })
      res.write('hello')
      res.addTrailers({ 'x-sum': '42' })
      res.end()
    })
    const response = await server.send(delivery())
    expect([response.text, response.trailers['x-sum']]).toEqual(['hello', '42'])
  })

  test('early hints go out at once', async () => {
    const store = watchedStore()
    const server = await guarded(store, (_, res) => {
      res.writeEarlyHints({ link: '</style.css>; rel=preload' })
      res.end('hello')
    })
    const held = store.holdSettlements()
    const wire = await server.wire()
    await wire.send(bytesOf(delivery()))
    expect((await wire.response()).status).toBe(103)
    await store.settling()
    held.open()
    expect((await wire.response()).status).toBe(200)
  })

  test('a buffer that the handler uses again after its write was called back', async () => {
    const server = await guarded(watchedStore(), (_, res) => {
      const buffer = Buffer.from('hello')
      res.write(buffer, () => {
        buffer.fill('x')
        res.end()
      })
    })
    expect((await server.send(delivery())).text).toBe('hello')
  })

  test('a body of many chunks through a pipe, whole and in order', async () => {
    const chunks = Array.from({ length: 200 }, (_, index) => Buffer.alloc(1000, index % 251))
    const server = await guarded(watchedStore(), (_, res) => Readable.from(chunks).pipe(res))
    const response = await server.send(delivery())
    expect(response.body.equals(Buffer.concat(chunks))).toBe(true)
  })

  test.each([
    ['end', (res: ServerResponse) => res.end('hello')],
    [
      'write',
      (res: ServerResponse) => {
        res.write('hel')
        res.end('lo')
      },
    ],
    [
      'flushHeaders',
      (res: ServerResponse) => {
        res.flushHeaders()
        res.end('hello')
      },
    ],
  ])('the first %s shows its head to what wraps writeHead behind the hold', async (_, answer) => {
    const store = watchedStore()
    const server = await guarded(store, (_, res) => {
      const { writeHead } = res
      Object.assign(res, {
        writeHead(this: ServerResponse, ...args: unknown[]) {
          this.appendHeader('x-seen', 'once')
          return Reflect.apply(writeHead, this, [500, ...args.slice(1)])
        },
      })
      answer(res)
    })
    const request = delivery()
    const response = await server.send(request)
    expect([response.status, response.header('x-seen'), response.text]).toEqual([
      500,
      'once',
      'hello',
    ])
    expect((await store.settled(request.key)).state).toBe('failed')
  })

  test('a second answer reaches nothing that wraps the response before the hold', async () => {
    const heard: string[] = []
    const guard = githubWebhook({ secret, store: watchedStore() })
    const server = await start((req, res) => {
      for (const name of ['writeHead', 'write', 'end'] as const) {
        const method = res[name]
        Reflect.set(res, name, (...args: unknown[]) => {
          heard.push(`${name} ${args[0]}`)
          return Reflect.apply(method, res, args)
        })
      }
      res.on('error', () => {})
      guard(req, res, () => {
        res.writeHead(201)
        res.end('first')
        expect(() => res.writeHead(500)).toThrow('after they are sent')
        res.write('second')
        res.end('third')
      })
    })
    const response = await server.send(delivery())
    expect([response.status, response.text]).toEqual([201, 'first'])
    expect(heard).toEqual(['writeHead 201', 'end first'])
  })

  test('methods wrapped before and after the hold see one answer', async () => {
    const heard: string[] = []
    const guard = githubWebhook({ secret, store: watchedStore() })
    const wrap = (res: ServerResponse, name: string): void => {
      const { writeHead, end } = res
      Object.assign(res, {
        writeHead(...args: unknown[]) {
          heard.push(`${name} writeHead`)
          return Reflect.apply(writeHead, res, args)
        },
        end(...args: unknown[]) {
          heard.push(`${name} end`)
          return Reflect.apply(end, res, args)
        },
      })
    }
    const server = await start((req, res) => {
      wrap(res, 'before')
      guard(req, res, () => {
        wrap(res, 'after')
        res.writeHead(200)
        res.end('hello')
      })
    })
    const response = await server.send(delivery())
    expect(response.text).toBe('hello')
    expect(heard).toEqual(['after writeHead', 'after end', 'before writeHead', 'before end'])
  })
})

describe('the settlement has the last word', () => {
  test('a 2xx after webhook.fail() is replaced; headers of the handler go, earlier ones stay', async () => {
    for (const [retryable, status, state] of [
      [true, 503, 'failed'],
      [false, 422, 'dead'],
    ] as const) {
      const store = watchedStore()
      const guard = githubWebhook({ secret, store })
      const server = await start((req, res) => {
        res.setHeader('x-request-id', '7')
        guard(req, res, () => {
          req.webhook?.fail(undefined, { retryable })
          res.setHeader('x-handler', '1')
          res.setHeader('content-encoding', 'br')
          res.writeHead(200, 'Fine', { etag: '"1"', trailer: 'x-sum' })
          res.addTrailers({ 'x-sum': '1' })
          res.end('hello')
        })
      })
      const request = delivery()
      const response = await server.send(request)
      expect(response.status).toBe(status)
      expect(response.message).not.toBe('Fine')
      expect(response.header('webhook-inbox-status')).toBe(state)
      expect(response.header('content-type')).toBe('application/problem+json')
      expect(response.header('x-request-id')).toBe('7')
      for (const name of ['x-handler', 'content-encoding', 'etag', 'trailer'])
        expect(response.header(name)).toBeUndefined()
      expect(response.text).not.toContain('hello')
      expect((await store.settled(request.key)).state).toBe(state)
    }
  })

  test('a claim that was lost meanwhile is never answered with a blind 2xx', async () => {
    const store = watchedStore()
    const server = await guarded(store, async (req, res) => {
      const record = await store.get(req.webhook?.key ?? delivery().key)
      await store.abandon(record?.key ?? delivery().key, '')
      res.end('hello')
    })
    store.complete = async () => 'lost'
    const response = await server.send(delivery())
    expect([response.status, response.header('webhook-inbox-status')]).toEqual([503, 'lost'])
    expect(response.header('retry-after')).toBeDefined()
  })

  test('a run that takes too long is answered 503, and what the handler says later is not sent', async () => {
    const store = watchedStore()
    const late = gate()
    const codes: unknown[] = []
    const server = await guarded(
      store,
      async (req, res) => {
        await once(req.webhook?.signal ?? new EventTarget(), 'abort')
        await late.opened
        try {
          res.setHeader('x-late', '1')
        } catch (error) {
          codes.push(Reflect.get(Object(error), 'code'))
        }
        res.end()
      },
      { maxRunMs: 20 },
    )
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    const response = await wire.response()
    expect([response.status, response.header('webhook-inbox-status')]).toEqual([503, 'failed'])
    // What the handler does to the socket later must not hit another request.
    expect(response.header('connection')).toBe('close')
    await wire.closed
    late.open()
    await server.send(delivery('{}', {}, 'another secret'))
    expect(codes).toEqual(['ERR_HTTP_HEADERS_SENT'])
    expect((await store.settled(request.key)).code).toBe('run_timeout')
  })

  test('a handler that has sent its head only is answered 503 as well when its time is over', async () => {
    const server = await guarded(
      watchedStore(),
      (_, res) => {
        res.writeHead(200, { 'x-handler': '1' })
        res.write('hel')
      },
      { maxRunMs: 20 },
    )
    const response = await server.send(delivery())
    expect(response.status).toBe(503)
    expect(response.header('x-handler')).toBeUndefined()
  })

  test('a store that fails at completion lets the handler’s own answer out', async () => {
    const store = watchedStore()
    const server = await guarded(store, (_, res) => res.end('hello'))
    const complete = store.complete
    let failures = 0
    store.complete = async (...args) => {
      failures += 1
      if (failures === 1) throw new Error('connection lost')
      return complete(...args)
    }
    const request = delivery()
    const response = await server.send(request)
    expect([response.status, response.text]).toEqual([200, 'hello'])
    expect(response.header('webhook-inbox-status')).toBe('processing')
    expect((await store.settled(request.key)).state).toBe('completed')
  })
})

describe('a response larger than maxHeldResponseBytes', () => {
  const limited = { maxHeldResponseBytes: 1000 }

  async function flowing(
    route: Route,
    options: Partial<NodeWebhookOptions> = {},
  ): Promise<{ store: WatchedStore; wire: Wire; held: Gate; request: SignedRequest }> {
    const store = watchedStore()
    const server = await guarded(store, route, { ...limited, ...options })
    const held = store.holdSettlements()
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await store.settling()
    return { store, wire, held, request }
  }

  test('flows, and only its last chunk waits', async () => {
    const heard = recorder()
    const { store, wire, held, request } = await flowing(
      (_, res) => {
        for (const letter of ['a', 'b', 'c']) res.write(letter.repeat(600))
        res.end()
      },
      { observer: heard.observer },
    )
    while (!wire.received().includes('b'.repeat(600))) await once(wire.socket, 'data')
    expect(wire.received().includes('c')).toBe(true)
    expect(wire.received().toString()).not.toContain('ccc')
    expect(wire.received().toString()).toContain('webhook-inbox-status: processing')
    expect(heard.types().filter((type) => type === 'response_unheld')).toHaveLength(1)
    held.open()
    const response = await wire.response()
    expect(response.text).toBe(['a', 'b', 'c'].map((letter) => letter.repeat(600)).join(''))
    expect((await store.settled(request.key)).state).toBe('completed')
  })

  test('breaks off when the settlement takes the answer back', async () => {
    for (const answer of [
      (res: ServerResponse) => void res.setHeader('content-length', 1800),
      () => {},
    ]) {
      const { store, wire, held, request } = await flowing((req, res) => {
        answer(res)
        for (const letter of ['a', 'b', 'c']) res.write(letter.repeat(600))
        req.webhook?.fail()
        res.end()
      })
      held.open()
      await expect(wire.response()).rejects.toThrow()
      expect((await store.settled(request.key)).state).toBe('failed')
    }
  })

  test('breaks off when its handler takes too long', async () => {
    const store = watchedStore()
    const server = await guarded(
      store,
      (_, res) => {
        for (const letter of ['a', 'b', 'c']) res.write(letter.repeat(600))
      },
      { ...limited, maxRunMs: 20 },
    )
    const request = delivery()
    await expect(server.send(request)).rejects.toThrow('HTTP/1.1 200 OK')
    expect((await store.settled(request.key)).code).toBe('run_timeout')
  })

  test('a single chunk of any size is held whole', async () => {
    const store = watchedStore()
    const heard = recorder()
    const server = await guarded(store, (_, res) => res.end('a'.repeat(5000)), {
      ...limited,
      observer: heard.observer,
    })
    const response = await server.send(delivery())
    expect(response.text).toHaveLength(5000)
    expect(heard.types()).not.toContain('response_unheld')
  })

  test('a slow reader holds the source back, and gets everything', async () => {
    const total = 64
    const chunk = 'x'.repeat(256 * 1024)
    let produced = 0
    const store = watchedStore()
    const server = await guarded(
      store,
      (_, res) =>
        Readable.from(
          (function* () {
            for (; produced < total; produced += 1) yield chunk
          })(),
        ).pipe(res),
      limited,
    )
    const request = delivery()
    const asked = httpRequest({ port: server.port, method: 'POST', headers: request.headers })
    asked.end(request.body)
    const [response]: IncomingMessage[] = await once(asked, 'response')
    // Answered in the same process, while the first connection is full.
    for (let round = 0; round < 20; round += 1) await server.send(delivery('{}', {}, 'other'))
    expect(produced).toBeLessThan(total)
    let bytes = 0
    for await (const part of response ?? []) bytes += part.length
    expect(bytes).toBe(total * chunk.length)
    expect((await store.settled(request.key)).state).toBe('completed')
  })
})

describe('a connection that ends before the handler does', () => {
  /** Sends a delivery, hangs up once the route runs, and waits until the server has seen it. */
  async function hungUp(
    route: (res: ServerResponse, left: Promise<unknown>) => unknown,
    options: Partial<NodeWebhookOptions> = {},
    how: (wire: Wire) => void = (wire) => wire.destroy(),
  ): Promise<{ store: WatchedStore; request: SignedRequest }> {
    const store = watchedStore()
    const running = gate()
    const server = await guarded(
      store,
      (_, res) => {
        const left = once(res, 'close')
        running.open()
        return route(res, left)
      },
      options,
    )
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await running.opened
    how(wire)
    return { store, request }
  }

  for (const [name, how] of Object.entries({
    'the end of its stream': (wire: Wire): void => wire.destroy(),
    'a reset': (wire: Wire): void => void wire.socket.resetAndDestroy(),
  })) {
    test(`by ${name}: the handler’s own end decides`, async () => {
      for (const [status, state] of [
        [200, 'completed'],
        [500, 'failed'],
        [422, 'dead'],
      ] as const) {
        const { store, request } = await hungUp(
          async (res, left) => {
            await left
            res.statusCode = status
            res.end('nobody reads this')
          },
          {},
          how,
        )
        expect((await store.settled(request.key)).state).toBe(state)
      }
    })
  }

  test('a handler that goes on streaming to nobody comes to its end', async () => {
    const { store, request } = await hungUp(async (res, left) => {
      res.write('first')
      await left
      for (let index = 0; index < 100; index += 1) {
        if (!res.write('x'.repeat(1000))) await once(res, 'drain')
      }
      res.end()
    })
    expect((await store.settled(request.key)).state).toBe('completed')
  })

  test('an answer that was piped when the sender left settles by its status', async () => {
    for (const send of [
      (source: Readable, res: ServerResponse) => void source.pipe(res),
      (source: Readable, res: ServerResponse) => pipeline(source, res).catch(() => {}),
    ]) {
      const source = new PassThrough()
      const { store, request } = await hungUp((res) => {
        res.statusCode = 202
        send(source, res)
        source.write('hello')
      })
      expect((await store.settled(request.key)).state).toBe('completed')
    }
  })

  test('a handler that sent its head early and works on is waited for', async () => {
    const done = gate()
    const { store, request } = await hungUp(async (res, left) => {
      res.writeHead(200)
      res.flushHeaders()
      await left
      done.open()
      res.end()
    })
    await done.opened
    expect((await store.settled(request.key)).state).toBe('completed')
  })

  test('a source that breaks after the sender has left is no success', async () => {
    const { store, request } = await hungUp(async (res, left) => {
      await left
      const source = new PassThrough()
      source.on('error', () => {})
      source.pipe(res)
      source.destroy(new Error('disk gone'))
    })
    expect((await store.settled(request.key)).state).toBe('failed')
  })

  test('a source that has ended leaves the end to its handler', async () => {
    const store = watchedStore()
    const running = gate()
    const server = await guarded(store, async (req, res) => {
      const left = once(res, 'close')
      running.open()
      await left
      Readable.from(['hello'])
        .pipe(res, { end: false })
        .on('unpipe', () =>
          // Later than a stranded answer would be settled.
          setTimeout(() => {
            req.webhook?.fail()
            res.end()
          }, 200),
        )
    })
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await running.opened
    wire.destroy()
    expect((await store.settled(request.key)).code).toBe('handler_failed')
  })

  test('a sender that left before the claim: what is piped to nobody settles by its status', async () => {
    const store = watchedStore()
    const { claim } = store
    const asked = gate()
    const goOn = gate()
    store.claim = async (entries) => {
      asked.open()
      await goOn.opened
      return claim(entries)
    }
    const server = await guarded(store, (_, res) => {
      const source = new PassThrough()
      source.pipe(res)
      source.destroy()
    })
    const left = new Promise((resolve) =>
      server.server.once('request', (_, res) => res.once('close', resolve)),
    )
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await asked.opened
    wire.destroy()
    await left
    goOn.open()
    expect((await store.settled(request.key)).state).toBe('completed')
  })

  test('what nobody reads is not kept and not reported as unheld', async () => {
    const heard = recorder()
    const { store, request } = await hungUp(
      async (res, left) => {
        await left
        for (let index = 0; index < 10; index += 1) res.write('x'.repeat(1000))
        expect(res.writableLength).toBe(0)
        res.end()
      },
      { maxHeldResponseBytes: 1000, observer: heard.observer },
    )
    expect((await store.settled(request.key)).state).toBe('completed')
    expect(heard.types()).not.toContain('response_unheld')
  })

  test('a handler that never ends is a failure once its time is over', async () => {
    const { store, request } = await hungUp(() => {}, { maxRunMs: 50 })
    expect(await store.settled(request.key)).toMatchObject({ state: 'failed', code: 'run_timeout' })
  })

  test('while the settlement is under way it changes nothing', async () => {
    const store = watchedStore()
    const server = await guarded(store, (_, res) => res.end('hello'))
    const held = store.holdSettlements()
    const left = new Promise((resolve) =>
      server.server.once('connection', (socket) => socket.once('end', resolve)),
    )
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await store.settling()
    wire.destroy()
    await left
    held.open()
    expect((await store.settled(request.key)).state).toBe('completed')
    expect((await server.send(request)).status).toBe(200)
  })

  test('a source that breaks is no success', async () => {
    const store = watchedStore()
    const server = await guarded(store, (_, res) => {
      const source = new PassThrough()
      pipeline(source, res).catch(() => {})
      source.write('hello', () => source.destroy(new Error('disk gone')))
    })
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await wire.closed
    expect(wire.received()).toHaveLength(0)
    expect((await store.settled(request.key)).state).toBe('failed')
  })

  const destroyers: Record<string, Route> = {
    'res.destroy()': (_, res) => res.destroy(),
    'res.destroy(error)': (_, res) => res.destroy(new Error('no')),
    'req.socket.destroy()': (req) => req.socket.destroy(),
    'req.socket.destroy(error)': (req) => req.socket.destroy(new Error('no')),
    'a head and req.socket.destroy()': (req, res) => {
      res.writeHead(200)
      req.socket.destroy()
    },
  }
  for (const [name, route] of Object.entries(destroyers)) {
    test(`${name} by the handler is a failure`, async () => {
      const store = watchedStore()
      const server = await guarded(store, route)
      const wire = await server.wire()
      const request = delivery()
      await wire.send(bytesOf(request))
      await wire.closed
      expect(wire.received()).toHaveLength(0)
      expect((await store.settled(request.key)).state).toBe('failed')
    })
  }

  test('an answer that is complete gets out although the handler then destroys the socket', async () => {
    for (const destroy of [
      (req: IncomingMessage) => void req.socket.destroy(),
      (_: IncomingMessage, res: ServerResponse) => void res.destroy(),
    ]) {
      const { response, state, wire } = await heldBack((req, res) => {
        res.end('hello')
        destroy(req, res)
      })
      expect([response.status, response.text, state]).toEqual([200, 'hello', 'completed'])
      await wire.closed
    }
  })

  test('every answer of a pipeline gets out although a handler destroys the socket', async () => {
    const store = watchedStore()
    const [first, second] = [delivery(), delivery()]
    const server = await guarded(store, (req, res) => {
      res.end(req.webhook?.id)
      if (req.webhook?.id === second.id) req.socket.destroy()
    })
    const gates = new Map([first, second].map(({ id }) => [id, gate()]))
    const { complete } = store
    store.complete = async (hold, ...rest) => {
      const result = complete(hold, ...rest)
      await gates.get(hold.key.deliveryId)?.opened
      return result
    }
    const wire = await server.wire()
    await wire.send(Buffer.concat([bytesOf(first), bytesOf(second)]))
    await store.settling(2)
    for (const { id } of [first, second]) {
      gates.get(id)?.open()
      expect((await wire.response()).text).toBe(id)
    }
    await wire.closed
  })

  test('a server that closes its connections leaves the handler its say', async () => {
    const store = watchedStore()
    const running = gate()
    const goOn = gate()
    const server = await guarded(store, async (_, res) => {
      running.open()
      await goOn.opened
      res.end('hello')
    })
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await running.opened
    const closed = once(server.server, 'close')
    server.server.close()
    server.server.closeAllConnections()
    await closed
    await wire.closed
    goOn.open()
    expect((await store.settled(request.key)).state).toBe('completed')
    servers.splice(servers.indexOf(server), 1)
  })

  test('a handler that destroys its response while the server shuts down has failed', async () => {
    const store = watchedStore()
    const server = await guarded(store, (_, res) => {
      server.server.close()
      res.destroy()
    })
    const closed = once(server.server, 'close')
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await closed
    expect((await store.settled(request.key)).state).toBe('failed')
    servers.splice(servers.indexOf(server), 1)
  })

  test('a server that times the socket out leaves the handler its say', async () => {
    const store = watchedStore()
    const server = await guarded(store, async (_, res) => {
      await once(res, 'close')
      res.end('hello')
    })
    server.server.setTimeout(20)
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await wire.closed
    expect((await store.settled(request.key)).state).toBe('completed')
  })
})
