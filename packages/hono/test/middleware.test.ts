import { createServer } from 'node:http'
import {
  createInbox,
  type DeliveryRecord,
  hasCode,
  memoryStore,
  type Store,
} from '@webhook-inbox/core'
import { getWebhook, githubWebhook, PermanentError, webhook } from '@webhook-inbox/hono'
import { type Context, Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest'
import { gate, recorder, secret, signed, withOperations } from './support.ts'

const path = '/webhooks/github'

/** The one record of a store. */
async function onlyRecord(store: Store): Promise<DeliveryRecord> {
  const { records } = await store.list({})
  const [record] = records
  if (record === undefined || records.length > 1) throw new Error(`${records.length} records`)
  return record
}

/** What became of one delivery that met this route handler. */
async function runOnce(handler: (c: Context) => unknown, configure?: (app: Hono) => void) {
  const store = memoryStore()
  let runs = 0
  const app = new Hono()
  configure?.(app)
  // Hono's types ask for a response; a plain JavaScript handler may forget it.
  app.post(path, githubWebhook({ secret, store }), (async (c: Context) => {
    runs += 1
    return handler(c)
  }) as (c: Context) => Promise<Response>)
  const request = signed()
  const response = await app.request(path, request)
  const { state } = await onlyRecord(store)
  return { response, state, again: async () => app.request(path, request), runs: () => runs }
}

describe('a guarded route', () => {
  it("runs GitHub's published vector once, with typed variables", async () => {
    const runs: unknown[] = []
    const app = new Hono().post(path, githubWebhook({ secret, store: memoryStore() }), (c) => {
      expectTypeOf(c.get('webhook').id).toBeString()
      runs.push(new TextDecoder().decode(c.get('webhook').rawBody))
      return c.text('thanks', 201)
    })
    const request = {
      method: 'POST',
      headers: {
        'x-github-event': 'push',
        'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
        'x-hub-signature-256':
          'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      },
      body: 'Hello, World!',
    }
    const first = await app.request(path, request)
    expect(first.status).toBe(201)
    expect(first.headers.get('webhook-inbox-status')).toBe('completed')
    expect(await first.text()).toBe('thanks')
    const copy = await app.request(path, request)
    expect(copy.status).toBe(200)
    expect(await copy.json()).toEqual({
      status: 'completed',
      deliveryId: '72d3162e-cc78-11e3-81ab-4c9367dc0958',
    })
    expect(runs).toEqual(['Hello, World!'])
  })

  it('types the delivery in chained middleware, and anywhere else through getWebhook', async () => {
    const save = (c: Context): string => {
      const found = getWebhook(c)
      return found.event === 'push' ? found.payload.ref : ''
    }
    const app = new Hono()
      .use(path, githubWebhook({ secret, store: memoryStore() }))
      .post(path, (c) => {
        const found = c.get('webhook')
        return c.json([found.event === 'push' ? found.payload.ref : '', save(c)])
      })
    const response = await app.request(path, signed('{"ref":"refs/heads/main"}'))
    expect(await response.json()).toEqual(['refs/heads/main', 'refs/heads/main'])
  })

  it('says what is missing when getWebhook has nothing to give', async () => {
    const app = new Hono()
    let thrown: unknown
    app.post(path, (c) => {
      try {
        getWebhook(c)
      } catch (error) {
        thrown = error
      }
      return c.body(null, 204)
    })
    await app.request(path, signed())
    expect(hasCode(thrown, 'ERR_NO_WEBHOOK')).toBe(true)
    expect(String(thrown)).toContain('Mount githubWebhook(')
  })

  it('answers 202 while the first run goes on', async () => {
    const handler = gate()
    const started = gate()
    const app = new Hono().post(
      path,
      githubWebhook({ secret, store: memoryStore() }),
      async (c) => {
        started.open()
        await handler.opened
        return c.text('done')
      },
    )
    const request = signed()
    const first = app.request(path, request)
    await started.opened
    const copies = await Promise.all(Array.from({ length: 20 }, () => app.request(path, request)))
    expect(copies.map((copy) => copy.status)).toEqual(Array.from({ length: 20 }, () => 202))
    handler.open()
    expect((await first).status).toBe(200)
  })

  it('refuses a forged request before the store is asked', async () => {
    const claim = vi.fn<Store['claim']>()
    const store = withOperations(memoryStore(), { claim })
    const app = new Hono().post(path, githubWebhook({ secret, store }), (c) => c.text('ran'))
    const response = await app.request(path, { ...signed(), body: '{"zen":"Forged"}' })
    expect(response.status).toBe(401)
    expect(response.headers.get('content-type')).toBe('application/problem+json')
    expect(await response.json()).toMatchObject({ code: 'signature_mismatch' })
    expect(claim).not.toHaveBeenCalled()
  })

  it('keeps the headers that earlier middleware has set on every answer', async () => {
    const app = new Hono()
    app.use(async (c, next) => {
      c.header('x-request-id', '7')
      await next()
    })
    app.post(path, githubWebhook({ secret, store: memoryStore() }), (c) => c.text('ran'))
    const request = signed()
    for (const body of [request.body, request.body, 'forged']) {
      const response = await app.request(path, { ...request, body })
      expect(response.headers.get('x-request-id')).toBe('7')
    }
  })

  it('runs the option handler in place of a route, with the context', async () => {
    const store = memoryStore()
    const seen: unknown[] = []
    const app = new Hono<{ Bindings: { region: string } }>()
    app.post(
      path,
      githubWebhook({
        secret,
        store,
        handler: async (delivery, c: Context<{ Bindings: { region: string } }>) => {
          seen.push(delivery.payload, c.env.region, await c.req.json())
        },
      }),
    )
    const response = await app.request(path, signed('{"zen":"Favor focus"}'), { region: 'eu' })
    expect(await response.json()).toMatchObject({ status: 'completed' })
    expect(seen).toEqual([{ zen: 'Favor focus' }, 'eu', { zen: 'Favor focus' }])
    expect((await onlyRecord(store)).state).toBe('completed')
  })

  it('runs a route that is guarded twice once for each delivery', async () => {
    const store = memoryStore()
    const app = new Hono()
    app.use(githubWebhook({ secret, store }))
    let failed = false
    app.post('/', githubWebhook({ secret, store, handler: () => {} }))
    app.post('/route', githubWebhook({ secret, store }), (c) => {
      if (!failed) c.get('webhook').fail()
      failed = true
      return c.text(`attempt ${c.get('webhook').attempt}`)
    })
    const [handled, routed] = [signed(), signed()]
    const statusOf = async (path: string, request: typeof handled) => {
      const { status, headers } = await app.request(path, request)
      return [status, headers.get('webhook-inbox-status')]
    }
    expect(await statusOf('/', handled)).toEqual([200, 'completed'])
    expect(await statusOf('/route', routed)).toEqual([503, 'failed'])
    expect(await (await app.request('/route', routed)).text()).toBe('attempt 2')
    expect(await statusOf('/route', routed)).toEqual([200, 'completed'])
  })

  it('keeps endpoints that share an inbox apart', async () => {
    const inbox = createInbox({ store: memoryStore() })
    const runs: string[] = []
    const app = new Hono()
    for (const endpoint of ['a', 'b']) {
      app.post(`/${endpoint}`, githubWebhook({ secret, inbox, endpoint }), (c) => {
        runs.push(endpoint)
        return c.text('ran')
      })
    }
    const request = signed()
    for (const target of ['/a', '/b', '/a', '/b']) await app.request(target, request)
    expect(runs).toEqual(['a', 'b'])
  })
})

describe('the final answer decides', () => {
  it.each([
    [200, 'completed'],
    [202, 'completed'],
    [302, 'completed'],
    [400, 'dead'],
    [401, 'failed'],
    [403, 'failed'],
    [404, 'failed'],
    [409, 'failed'],
    [422, 'dead'],
    [500, 'failed'],
    [503, 'failed'],
  ] as const)('%i settles as %s', async (status, expected) => {
    const { response, state } = await runOnce((c) => c.body('answer', status))
    expect(response.status).toBe(status)
    expect(response.headers.get('webhook-inbox-status')).toBe(expected)
    expect(await response.text()).toBe('answer')
    expect(state).toBe(expected)
  })

  it('a handler that returns nothing is to be run again', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
    const run = await runOnce(() => undefined)
    expect(run.response.status).toBe(500)
    expect(run.response.headers.get('webhook-inbox-status')).toBe('failed')
    expect(run.state).toBe('failed')
    await run.again()
    expect(run.runs()).toBe(2)
  })

  it('a guard behind the middleware that refuses leaves the delivery to be run again', async () => {
    const store = memoryStore()
    let isAllowed = false
    const app = new Hono()
    app.use(path, githubWebhook({ secret, store }))
    app.use(path, async (c, next) => (isAllowed ? next() : c.text('no', 403)))
    app.post(path, (c) => c.text('ran'))
    const request = signed()
    expect((await app.request(path, request)).status).toBe(403)
    expect((await onlyRecord(store)).state).toBe('failed')
    isAllowed = true
    expect(await (await app.request(path, request)).text()).toBe('ran')
  })

  it('a route that is not there is to be run again, and the observer hears why', async () => {
    const { events, observer } = recorder()
    const store = memoryStore()
    const app = new Hono().use(githubWebhook({ secret, store, path, observer }))
    app.notFound((c) => c.text('nothing here', 404))
    const response = await app.request(path, signed())
    expect([response.status, await response.text()]).toEqual([404, 'nothing here'])
    expect((await onlyRecord(store)).state).toBe('failed')
    expect(events.filter(({ type }) => type === 'no_handler')).toHaveLength(1)
  })

  it('an error is settled by what the app answers to it', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
    const broken = await runOnce(() => {
      throw new Error('database down')
    })
    expect([broken.response.status, broken.state]).toEqual([500, 'failed'])
    const refused = await runOnce(() => {
      throw new HTTPException(422, { message: 'unprocessable' })
    })
    expect([refused.response.status, refused.state]).toEqual([422, 'dead'])
    expect(await refused.response.text()).toBe('unprocessable')
    const handled = await runOnce(
      () => {
        throw new Error('already there')
      },
      (app) => app.onError((_, c) => c.text('fine', 200)),
    )
    expect([handled.response.status, handled.state]).toEqual([200, 'completed'])
    expect(handled.response.headers.get('webhook-inbox-status')).toBe('completed')
  })

  it('an error handler of a mounted app counts the same', async () => {
    const store = memoryStore()
    const inner = new Hono()
    inner.onError((_, c) => c.text('busy', 503))
    inner.post('/', githubWebhook({ secret, store }), () => {
      throw new Error('database down')
    })
    const response = await new Hono().route(path, inner).request(path, signed())
    expect([response.status, (await onlyRecord(store)).state]).toEqual([503, 'failed'])
  })

  it('a permanent error is a 422 that does not show its message', async () => {
    const { response, state } = await runOnce(() => {
      throw new PermanentError('no such repository')
    })
    expect([response.status, state]).toEqual([422, 'dead'])
    expect(await response.text()).toBe('Unprocessable Content')
  })

  it('a permanent error is never retried, whatever answers it', async () => {
    const run = await runOnce(
      () => {
        throw new PermanentError('no such repository')
      },
      (app) => app.onError((_, c) => c.text('sorry', 500)),
    )
    expect([run.response.status, run.state]).toEqual([500, 'dead'])
    expect((await run.again()).status).toBe(202)
    expect(run.runs()).toBe(1)
  })

  it('what is thrown past the app is settled and thrown on', async () => {
    const store = memoryStore()
    const app = new Hono().post(path, githubWebhook({ secret, store }), () => {
      throw 'not an error'
    })
    await expect(app.request(path, signed())).rejects.toBe('not an error')
    expect((await onlyRecord(store)).state).toBe('failed')
  })

  it('an error handler that throws itself is a failure', async () => {
    const store = memoryStore()
    const app = new Hono().post(path, githubWebhook({ secret, store }), () => {
      throw new Error('first')
    })
    app.onError((error) => {
      throw error
    })
    await expect(app.request(path, signed())).rejects.toThrow('first')
    expect((await onlyRecord(store)).state).toBe('failed')
  })

  it('webhook.fail() takes a 2xx back, without the headers that described it', async () => {
    const retryable = await runOnce((c) => {
      getWebhook(c).fail(new Error('half done'))
      return c.body('compressed', 200, { 'content-encoding': 'gzip', 'content-length': '10' })
    })
    expect([retryable.response.status, retryable.state]).toEqual([503, 'failed'])
    expect(retryable.response.headers.get('content-encoding')).toBeNull()
    expect(retryable.response.headers.get('content-length')).toBeNull()
    expect(await retryable.response.json()).toMatchObject({ code: 'handler_failed' })
    const final = await runOnce((c) => {
      getWebhook(c).fail(new Error('no such thing'), { retryable: false })
      return c.json({ ok: true })
    })
    expect([final.response.status, final.state]).toEqual([422, 'dead'])
  })

  it('settleBy overrides it', async () => {
    const store = memoryStore()
    const app = new Hono().post(
      path,
      githubWebhook({
        secret,
        store,
        settleBy: (status) => (status === 409 ? 'complete' : undefined),
      }),
      (c) => c.text('known already', 409),
    )
    const response = await app.request(path, signed())
    expect([response.status, (await onlyRecord(store)).state]).toEqual([409, 'completed'])
  })

  it('a handler that never ends is answered after maxRunMs', async () => {
    const store = memoryStore()
    let signal: AbortSignal | undefined
    const app = new Hono().post(path, githubWebhook({ secret, store, maxRunMs: 20 }), (c) => {
      signal = c.get('webhook').signal
      return new Promise<Response>(() => {})
    })
    const response = await app.request(path, signed())
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ code: 'run_timeout' })
    expect((await onlyRecord(store)).state).toBe('failed')
    expect(signal?.reason).toBe('timeout')
  })

  it('a handler that fails after maxRunMs disturbs nobody', async () => {
    const late = gate()
    const ended = gate()
    const app = new Hono().post(
      path,
      githubWebhook({ secret, store: memoryStore(), maxRunMs: 20 }),
      async () => {
        await late.opened
        ended.open()
        throw 'too late'
      },
    )
    const response = await app.request(path, signed())
    late.open()
    await ended.opened
    await new Promise((resolve) => setImmediate(resolve))
    expect(response.status).toBe(503)
    expect(response.headers.get('webhook-inbox-status')).toBe('failed')
  })

  it('a claim that was lost is not answered 2xx', async () => {
    const store = withOperations(memoryStore(), { complete: async () => 'lost' })
    const app = new Hono().post(path, githubWebhook({ secret, store }), (c) => c.text('ran'))
    const response = await app.request(path, signed())
    expect(response.status).toBe(503)
    expect(await response.json()).toMatchObject({ code: 'claim_lost' })
  })

  it('answers 503 when the store is down, without running', async () => {
    const store = withOperations(memoryStore(), {
      claim: () => Promise.reject(new Error('down')),
    })
    let runs = 0
    const app = new Hono().post(path, githubWebhook({ secret, store }), (c) => {
      runs += 1
      return c.text('ran')
    })
    const response = await app.request(path, signed())
    expect([response.status, response.headers.get('retry-after'), runs]).toEqual([503, '1', 0])
  })
})

describe('responses of every kind pass', () => {
  it('without a body', async () => {
    const { response, state } = await runOnce((c) => c.body(null, 204))
    expect([response.status, state]).toEqual([204, 'completed'])
    expect(response.headers.get('webhook-inbox-status')).toBe('completed')
  })

  it('with headers that cannot be changed', async () => {
    const upstream = createServer((_, response) => response.end('from upstream'))
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void upstream.close())
    const address = upstream.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const proxied = await runOnce(() => fetch(`http://127.0.0.1:${port}/`))
    expect(await proxied.response.text()).toBe('from upstream')
    expect(proxied.response.headers.get('webhook-inbox-status')).toBe('completed')
    const redirect = await runOnce(() => Response.redirect('https://example.test/', 303))
    expect([redirect.response.status, redirect.response.headers.get('location')]).toEqual([
      303,
      'https://example.test/',
    ])
  })

  it('with several cookies', async () => {
    const { response } = await runOnce((c) => {
      c.header('set-cookie', 'a=1', { append: true })
      c.header('set-cookie', 'b=2', { append: true })
      return c.text('ran')
    })
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  })

  it('but not one that was sent before, or is an error', async () => {
    const used = new Response('once')
    await used.text()
    const again = await runOnce(() => used)
    expect([again.response.status, again.state]).toEqual([503, 'failed'])
    const error = await runOnce(() => Response.error())
    expect([error.response.status, error.state]).toEqual([503, 'failed'])
  })
})

describe('mounts', () => {
  const methods = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']

  it.each(methods)('answers 405 to %s on its path', async (method) => {
    const app = new Hono().use(githubWebhook({ secret, store: memoryStore(), path }))
    app.all(path, (c) => c.text('ran'))
    const response = await app.request(path, { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
    expect(await response.text()).toBe(
      method === 'HEAD'
        ? ''
        : '{"title":"Method Not Allowed","status":405,"code":"method_not_allowed","detail":"Only POST is answered here."}',
    )
  })

  it.each(methods)('leaves %s on another path to the app', async (method) => {
    const app = new Hono().use(githubWebhook({ secret, store: memoryStore(), path }))
    app.all('/other', (c) => c.text('mine'))
    const response = await app.request('/other', { method })
    expect([response.status, response.headers.get('webhook-inbox-status')]).toEqual([200, null])
  })

  it('leaves other methods to the router when it guards one route', async () => {
    const app = new Hono().post(path, githubWebhook({ secret, store: memoryStore() }), (c) =>
      c.text('ran'),
    )
    const response = await app.request(path)
    expect([response.status, await response.text()]).toEqual([404, '404 Not Found'])
  })

  it('compares the absolute path, without query and one trailing slash', async () => {
    const inner = new Hono().use(
      githubWebhook({ secret, store: memoryStore(), path: '/api/hook/' }),
    )
    inner.all('*', (c) => c.text(c.get('webhook')?.id ?? 'next'))
    const mounted = new Hono().route('/api', inner)
    const based = new Hono()
      .basePath('/api')
      .use(githubWebhook({ secret, store: memoryStore(), path: '/api/hook' }))
      .all('*', (c) => c.text(c.get('webhook')?.id ?? 'next'))
    for (const app of [mounted, based]) {
      for (const target of ['/api/hook', '/api/hook/', '/api/hook?a=1', '/api/hook/?a=/x']) {
        const request = signed()
        const response = await app.request(target, request)
        expect(await response.text()).toBe(request.headers['x-github-delivery'])
      }
      for (const target of ['/api/hook//', '/api/hook/x', '/api', '/api/x?/api/hook']) {
        expect(await (await app.request(target, signed())).text()).toBe('next')
      }
    }
  })

  it('guards a whole mount', async () => {
    const inner = new Hono().use(githubWebhook({ secret, store: memoryStore() }))
    inner.post('/', (c) => c.text('ran'))
    const app = new Hono().route(path, inner)
    expect(await (await app.request(path, signed())).text()).toBe('ran')
    expect((await app.request(path)).status).toBe(405)
  })
})

describe('options', () => {
  const store = memoryStore()

  it.each([
    [{ store }, '"secret"'],
    [{ secret: ' ', store }, '"secret"'],
    [{ secret }, '"store" is missing'],
    [{ secret, store, inbox: createInbox({ store }) }, 'not both'],
    [{ secret, store, sercet: secret }, 'Did you mean "secret"?'],
    [{ secret, store, path: 'webhooks' }, 'must begin with "/"'],
    [{ secret, store, paht: '/webhooks' }, 'Did you mean "path"?'],
    [{ secret, store, maxHeldResponseBytes: 0 }, '"maxHeldResponseBytes"'],
    [{ secret, store, maxHeldResponseBytes: '1mb' }, '"maxHeldResponseBytes"'],
    [undefined, '"secret"'],
  ])('refuses %o at construction', (options, message) => {
    let thrown: unknown
    try {
      Reflect.apply(githubWebhook, undefined, [options])
    } catch (error) {
      thrown = error
    }
    expect(hasCode(thrown, 'ERR_OPTION')).toBe(true)
    expect(String(thrown)).toContain(message)
  })

  it('refuses an unknown provider', () => {
    expect(() => Reflect.apply(webhook, undefined, [{ provider: 'githb', secret, store }])).toThrow(
      'Did you mean "github"?',
    )
  })
})

describe('in a Worker', () => {
  it('keeps the isolate alive until the store has heard of the completion', async () => {
    const store = memoryStore()
    const { heard, observer } = recorder()
    let isDown = true
    const flaky = withOperations(store, {
      complete: (...call) => (isDown ? Promise.reject(new Error('down')) : store.complete(...call)),
    })
    const app = new Hono().post(path, githubWebhook({ secret, store: flaky, observer }), (c) =>
      c.text('ran'),
    )
    const kept: Promise<unknown>[] = []
    const executionCtx = {
      waitUntil: (work: Promise<unknown>) => void kept.push(work),
      passThroughOnException() {},
      props: {},
    }
    const response = await app.request(path, signed(), {}, executionCtx)
    expect([response.status, response.headers.get('webhook-inbox-status')]).toEqual([
      200,
      'processing',
    ])
    expect(kept).toHaveLength(1)
    isDown = false
    await heard('settle_recovered')
    await Promise.all(kept)
    expect((await onlyRecord(store)).state).toBe('completed')
  })

  it('asks for nothing when everything was stored', async () => {
    const app = new Hono().post(path, githubWebhook({ secret, store: memoryStore() }), (c) =>
      c.text('ran'),
    )
    const waitUntil = vi.fn()
    await app.request(path, signed(), {}, { waitUntil, passThroughOnException() {}, props: {} })
    expect(waitUntil).not.toHaveBeenCalled()
  })
})
