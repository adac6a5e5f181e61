import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { PassThrough, Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { githubWebhook, PermanentError } from '@webhook-inbox/koa'
import type { Middleware, Next, ParameterizedContext } from 'koa'
import compress from 'koa-compress'
import { afterEach, describe, expect, test } from 'vitest'
import {
  bytesOf,
  delivery,
  gate,
  recorder,
  type SignedRequest,
  secret,
  type Wire,
  watchedStore,
} from '../../node/test/support.ts'
import { closeAll, listen, versions } from './versions.ts'

afterEach(closeAll)

type Route = (ctx: ParameterizedContext, next: Next) => unknown
type Options = { readonly maxHeldResponseBytes?: number; readonly maxRunMs?: number }

const long = 'a long answer, long enough to be worth compressing. '.repeat(100)

describe.each(versions)('%s: settled before answered', (_name, Koa) => {
  /** Sends one delivery with the settlement held back, expects silence, then lets it go. */
  async function outcome(
    route: Route,
    { before = [], request = delivery() }: { before?: Middleware[]; request?: SignedRequest } = {},
  ) {
    const store = watchedStore()
    const app = new Koa()
    for (const middleware of before) app.use(middleware)
    app.use(githubWebhook({ secret, store }))
    app.use((ctx, next) => route(ctx, next))
    const server = await listen(app)
    const held = store.holdSettlements()
    const wire = await server.wire()
    await wire.send(bytesOf(request))
    await store.settling()
    // A whole exchange of another request: time enough for bytes that should not come.
    expect((await server.send(delivery('{}', {}, 'another secret'))).status).toBe(401)
    expect(wire.received().toString()).toBe('')
    held.open()
    const response = await wire.response()
    const { state } = await store.settled(request.key)
    expect(response.header('webhook-inbox-status')).toBe(state)
    return { response, state }
  }

  const routes: Record<string, { route: Route; status?: number; text?: string; state?: string }> = {
    'a text': {
      route(ctx) {
        ctx.body = 'hello'
      },
    },
    'an object': {
      route(ctx) {
        ctx.body = { ok: true }
      },
      text: '{"ok":true}',
    },
    'a buffer': {
      route(ctx) {
        ctx.body = Buffer.from('hello')
      },
    },
    'a stream': {
      route(ctx) {
        ctx.body = Readable.from([Buffer.from('hel'), Buffer.from('lo')])
      },
    },
    'a file': {
      route(ctx) {
        ctx.body = createReadStream(new URL(import.meta.url))
      },
      text: 'PermanentError',
    },
    'a status alone': {
      route(ctx) {
        ctx.status = 202
      },
      status: 202,
      text: 'Accepted',
    },
    'no content': {
      route(ctx) {
        ctx.status = 204
      },
      status: 204,
      text: '',
    },
    'a null body': {
      route(ctx) {
        ctx.body = null
      },
      status: 204,
      text: '',
    },
    'a redirect': {
      route(ctx) {
        ctx.redirect('/elsewhere')
      },
      status: 302,
      text: '/elsewhere',
    },
    'ctx.res.end': {
      route(ctx) {
        ctx.res.statusCode = 200
        ctx.res.end('hello')
      },
    },
    'ctx.respond = false, then later': {
      route(ctx) {
        ctx.respond = false
        setImmediate(() => {
          ctx.res.writeHead(201, { 'content-type': 'text/plain' })
          ctx.res.write('hel')
          setImmediate(() => ctx.res.end('lo'))
        })
      },
      status: 201,
    },
    'no body': { route() {}, status: 404, text: 'Not Found', state: 'failed' },
    'a guard that refuses': {
      route(ctx) {
        ctx.status = 403
      },
      status: 403,
      text: 'Forbidden',
      state: 'failed',
    },
    'an error': {
      route() {
        throw new Error('database away')
      },
      status: 500,
      text: 'Internal Server Error',
      state: 'failed',
    },
    'ctx.throw(422)': {
      route: (ctx) => ctx.throw(422, 'no such field'),
      status: 422,
      text: 'no such field',
      state: 'dead',
    },
    'a PermanentError': {
      route() {
        throw new PermanentError('no such customer')
      },
      status: 422,
      text: 'Unprocessable Entity',
      state: 'dead',
    },
    'something that is no error': {
      route() {
        throw 'text'
      },
      status: 500,
      text: 'Internal Server Error',
      state: 'failed',
    },
    'webhook.fail()': {
      route(ctx) {
        ctx.state.webhook.fail(new Error('half done'))
        ctx.body = 'hello'
      },
      status: 503,
      text: 'handler_failed',
      state: 'failed',
    },
  }

  test.each(Object.entries(routes))(
    '%s',
    async (_, { route, status = 200, text = 'hello', state = 'completed' }) => {
      const { response, ...record } = await outcome(route)
      expect([response.status, record.state]).toEqual([status, state])
      if (text === '') expect(response.text).toBe('')
      else expect(response.text).toContain(text)
    },
  )

  test.each([null, undefined])('a handler that throws %s has failed', async (nothing) => {
    const { response, state } = await outcome((ctx) => {
      ctx.app.silent = true
      throw nothing
    })
    expect([response.status, state]).toEqual([500, 'failed'])
  })

  test('an error middleware outside has the last word', async () => {
    const catching: Middleware = async (ctx, next) => {
      try {
        await next()
      } catch {
        ctx.status = 409
        ctx.body = 'known already'
      }
    }
    const route: Route = () => {
      throw new Error('duplicate')
    }
    const failed = await outcome(route, { before: [catching] })
    expect([failed.response.status, failed.response.text, failed.state]).toEqual([
      409,
      'known already',
      'failed',
    ])
    const permanent = await outcome(
      () => {
        throw new PermanentError('no such customer')
      },
      { before: [catching] },
    )
    expect([permanent.response.status, permanent.state]).toEqual([409, 'dead'])
  })

  test('what an outer middleware makes of the answer settles', async () => {
    const rewriting: Middleware = async (ctx, next) => {
      await next()
      ctx.status = 503
      ctx.body = 'in maintenance'
      ctx.set('x-by', 'outer')
    }
    const { response, state } = await outcome(
      (ctx) => {
        ctx.body = 'hello'
      },
      { before: [rewriting] },
    )
    expect([response.status, response.text, response.header('x-by'), state]).toEqual([
      503,
      'in maintenance',
      'outer',
      'failed',
    ])
  })

  test.each(['before', 'after'])('koa-compress %s us', async (order) => {
    const zip = compress()
    const write: Route = (ctx) => {
      ctx.type = 'text/plain'
      ctx.body = long
    }
    for (const [encoding, unzip] of [
      ['gzip', gunzipSync],
      ['br', brotliDecompressSync],
    ] as const) {
      const request = delivery(undefined, { 'accept-encoding': encoding })
      const { response, state } =
        order === 'before'
          ? await outcome(write, { before: [zip], request })
          : await outcome((ctx) => zip(ctx, async () => void write(ctx, async () => {})), {
              request,
            })
      expect([response.header('content-encoding'), state]).toEqual([encoding, 'completed'])
      expect(unzip(response.body).toString()).toBe(long)
    }
  })

  test('koa-compress leaves our own answers alone', async () => {
    const app = new Koa()
    app.use(compress({ threshold: 0 }))
    app.use(githubWebhook({ secret, store: watchedStore() }))
    const server = await listen(app)
    const request = delivery('{}', { 'accept-encoding': 'gzip' }, 'another secret')
    const response = await server.send(request)
    expect([response.status, response.header('content-encoding')]).toEqual([401, undefined])
    expect(JSON.parse(response.text)).toMatchObject({ code: 'signature_mismatch' })
  })

  test('requests on one connection are answered in turn', async () => {
    const store = watchedStore()
    const app = new Koa().use(githubWebhook({ secret, store })).use((ctx) => {
      ctx.body = ctx.state.webhook.id
    })
    const server = await listen(app)
    const wire = await server.wire()
    const requests = [delivery(), delivery(), delivery()]
    await wire.send(Buffer.concat(requests.map((request) => bytesOf(request))))
    for (const { id } of requests) expect((await wire.response()).text).toBe(id)
  })
})

describe.each(versions)('%s: what goes wrong on the way', (_name, Koa) => {
  function guarded(route: Route, options: Options = {}) {
    const store = watchedStore()
    const heard = recorder()
    const app = new Koa()
    app.use(githubWebhook({ secret, store, observer: heard.observer, ...options }))
    app.use((ctx, next) => route(ctx, next))
    return { app, store, heard }
  }

  test.each([0, 1])('a stream that breaks after %i chunks is a failure', async (chunks) => {
    for (const [error, expected] of [
      [new Error('database away'), 'failed'],
      [new PermanentError('no such customer'), 'dead'],
    ] as const) {
      const { app, store } = guarded((ctx) => {
        const body = new PassThrough()
        ctx.body = body
        for (let chunk = 0; chunk < chunks; chunk += 1) body.write('part of ')
        setImmediate(() => setImmediate(() => body.destroy(error)))
      })
      const server = await listen(app)
      const wire = await server.wire()
      const request = delivery()
      await wire.send(bytesOf(request))
      const { state } = await store.settled(request.key)
      expect(state).toBe(expected)
      expect(await isRefused(wire)).toBe(true)
    }
  })

  test('a stream that breaks behind koa-compress is a failure', async () => {
    const store = watchedStore()
    const app = new Koa()
    app.use(compress({ threshold: 0 }))
    app.use(githubWebhook({ secret, store }))
    app.use((ctx) => {
      const body = new PassThrough()
      ctx.type = 'text/plain'
      ctx.body = body
      body.write(long)
      setImmediate(() => setImmediate(() => body.destroy(new Error('database away'))))
    })
    const server = await listen(app)
    const wire = await server.wire()
    const request = delivery(undefined, { 'accept-encoding': 'gzip' })
    await wire.send(bytesOf(request))
    expect((await store.settled(request.key)).state).toBe('failed')
    expect(await isRefused(wire)).toBe(true)
  })

  test('a body over the limit flows, but for its last chunk', async () => {
    const body = new PassThrough()
    const { app, store, heard } = guarded(
      (ctx) => {
        ctx.body = body
      },
      { maxHeldResponseBytes: 8 },
    )
    const server = await listen(app)
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    body.write('one,')
    body.write('two,three,')
    body.write('four,')
    while (!wire.received().includes('two,three,')) await once(wire.socket, 'data')
    expect(heard.types()).toContain('response_unheld')
    expect(wire.received().includes('four,')).toBe(false)
    expect((await store.get(request.key))?.state).toBe('processing')
    body.end()
    expect((await wire.response()).text).toBe('one,two,three,four,')
    expect((await store.settled(request.key)).state).toBe('completed')
  })

  test('a handler that never ends is answered after maxRunMs', async () => {
    const { app, store } = guarded(() => new Promise(() => {}), { maxRunMs: 30 })
    const server = await listen(app)
    const request = delivery()
    const response = await server.send(request)
    expect([response.status, JSON.parse(response.text).code]).toEqual([503, 'run_timeout'])
    expect((await store.settled(request.key)).state).toBe('failed')
  })

  test('a handler with ctx.respond = false that never ends, too', async () => {
    const { app } = guarded(
      (ctx) => {
        ctx.respond = false
      },
      { maxRunMs: 30 },
    )
    const server = await listen(app)
    expect((await server.send(delivery())).status).toBe(503)
  })

  const ends: Record<string, { route: Route; state: string }> = {
    'a body': {
      route(ctx) {
        ctx.body = 'hello'
      },
      state: 'completed',
    },
    'no body': { route() {}, state: 'failed' },
    'an error': {
      route() {
        throw new Error('database away')
      },
      state: 'failed',
    },
    'a PermanentError': {
      route() {
        throw new PermanentError('no such customer')
      },
      state: 'dead',
    },
    'ctx.res.end later': {
      route(ctx) {
        ctx.respond = false
        setImmediate(() => {
          ctx.res.statusCode = 200
          ctx.res.end('hello')
        })
      },
      state: 'completed',
    },
    'a stream': {
      route(ctx) {
        ctx.body = Readable.from(['hel', 'lo'])
      },
      state: 'completed',
    },
  }

  test.each(Object.entries(ends))(
    'a sender that hangs up leaves it to the handler: %s',
    async (name, { route, state }) => {
      const started = gate()
      const hungUp = gate()
      const { app, store, heard } = guarded(async (ctx, next) => {
        started.open()
        await hungUp.opened
        return route(ctx, next)
      })
      const server = await listen(app)
      const wire = await server.wire()
      const request = delivery()
      await wire.send(bytesOf(request))
      await started.opened
      wire.destroy()
      await wire.closed
      while ((await connectionsOf(server.server)) > 0)
        await new Promise((resolve) => setImmediate(resolve))
      hungUp.open()
      expect((await store.settled(request.key)).state).toBe(state)
      expect(heard.types().includes('no_handler')).toBe(name === 'no body')
    },
  )

  test('a sender that hangs up while outer middleware works', async () => {
    const store = watchedStore()
    const inner = gate()
    const hungUp = gate()
    const app = new Koa()
    app.use(async (_ctx, next) => {
      await next()
      inner.open()
      await hungUp.opened
    })
    app.use(githubWebhook({ secret, store }))
    app.use((ctx) => {
      ctx.body = 'hello'
    })
    const server = await listen(app)
    const wire = await server.wire()
    const request = delivery()
    await wire.send(bytesOf(request))
    await inner.opened
    wire.destroy()
    expect((await store.settled(request.key)).state).toBe('completed')
    hungUp.open()
  })
})

/** A broken answer ends in an error status, or in a connection that breaks: which one is a race within Koa. */
async function isRefused(wire: Wire): Promise<boolean> {
  try {
    return (await wire.response()).status >= 400
  } catch {
    return true
  }
}

function connectionsOf(server: {
  getConnections(callback: (error: Error | null, count: number) => void): unknown
}) {
  return new Promise<number>((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)))
  })
}
