import { PermanentError } from '@webhook-inbox/core'
import { getWebhook, githubWebhook, type NodeWebhookOptions, webhook } from '@webhook-inbox/node'
import { afterEach, describe, expect, test } from 'vitest'
import {
  bytesOf,
  delivery,
  gate,
  recorder,
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

describe('with a handler', () => {
  async function handled(
    handler: NonNullable<NodeWebhookOptions['handler']>,
    options: Partial<NodeWebhookOptions> = {},
  ) {
    const store = watchedStore()
    const listener = githubWebhook({ secret, store, handler, ...options } as NodeWebhookOptions)
    return { store, server: await start((req, res) => listener(req, res)) }
  }

  test('returning completes and answers 200; a copy is answered 200 without a run', async () => {
    const seen: unknown[] = []
    const { server } = await handled((delivered, { req, res }) => {
      seen.push([delivered.event, req.method, res.headersSent])
    })
    const request = delivery()
    for (const state of ['completed', 'completed']) {
      const response = await server.send(request)
      expect(response.status).toBe(200)
      expect(JSON.parse(response.text)).toEqual({ status: state, deliveryId: request.id })
    }
    expect(seen).toEqual([['push', 'POST', false]])
  })

  test('throwing is to be run again, PermanentError is final', async () => {
    for (const [error, status, state] of [
      [new Error('database away'), 500, 'failed'],
      [new PermanentError('no such customer'), 422, 'dead'],
    ] as const) {
      const { server, store } = await handled(async () => {
        throw error
      })
      const request = delivery()
      const response = await server.send(request)
      expect([response.status, (await store.settled(request.key)).state]).toEqual([status, state])
      expect(response.text).not.toContain(error.message)
    }
  })

  test('not one byte of the answer leaves before the delivery is settled', async () => {
    const { server, store } = await handled(() => {})
    const held = store.holdSettlements()
    const wire = await server.wire()
    await wire.send(bytesOf(delivery()))
    await store.settling()
    expect((await server.send(delivery('{}', {}, 'another secret'))).status).toBe(401)
    expect(wire.received()).toHaveLength(0)
    held.open()
    expect((await wire.response()).status).toBe(200)
  })

  test('the sender may leave: the handler’s end decides', async () => {
    const running = gate()
    const goOn = gate()
    const { server, store } = await handled(async () => {
      running.open()
      await goOn.opened
    })
    const request = delivery()
    const wire = await server.wire()
    await wire.send(bytesOf(request))
    await running.opened
    wire.destroy()
    await wire.closed
    goOn.open()
    expect((await store.settled(request.key)).state).toBe('completed')
  })

  test('a guard behind a guard: one claim, one run', async () => {
    const store = watchedStore()
    const outer = githubWebhook({ secret, store })
    const inner = githubWebhook({ secret, store })
    let runs = 0
    const server = await start((req, res) =>
      outer(req, res, () =>
        inner(req, res, () => {
          runs += 1
          if (runs === 1) req.webhook?.fail()
          res.end('ran')
        }),
      ),
    )
    const request = delivery()
    const answers = [await server.send(request), await server.send(request)]
    answers.push(await server.send(request))
    expect(answers.map(({ status }) => status)).toEqual([503, 200, 200])
    expect([runs, answers[1]?.text]).toEqual([2, 'ran'])
    expect(store.calls.filter((name) => name === 'claim')).toHaveLength(3)
  })

  test('path: ours with a query and a slash, 404 elsewhere, 405 for other methods', async () => {
    const { server } = await handled(() => {}, { path: '/webhooks/github' })
    for (const target of ['/webhooks/github', '/webhooks/github/', '/WEBHOOKS/github?x=1'])
      expect((await server.send(delivery(), target)).status).toBe(200)
    for (const target of ['/', '/webhooks/githubs', '/webhooks/github//', '/webhooks/githu%62'])
      expect((await server.send(delivery(), target)).status).toBe(404)
    const get = await server.send(delivery(''), '/webhooks/github', 'GET')
    expect([get.status, get.header('allow')]).toEqual([405, 'POST'])
    const wire = await server.wire()
    await wire.send(bytesOf(delivery(''), '/webhooks/github', 'HEAD'))
    wire.socket.end()
    await wire.closed
    expect(wire.received().toString()).toMatch(/^HTTP\/1\.1 405 [\s\S]*\r\n\r\n$/)
  })

  test('path: however a request line may say it', async () => {
    const { server } = await handled(() => {}, { path: '/webhooks/github' })
    for (const [target, status] of [
      ['http://hooks.example.test/webhooks/github', 200],
      ['HTTPS://other.test:8443/webhooks/github/?a=b', 200],
      ['/webhooks/github#part', 200],
      ['http://hooks.example.test', 404],
      ['http://hooks.example.test?/webhooks/github', 404],
      ['//hooks.example.test/webhooks/github', 404],
      ['/?/webhooks/github', 404],
      ['/http://hooks.example.test/webhooks/github', 404],
      ['*', 404],
    ] as const)
      expect([target, (await server.send(delivery(), target)).status]).toEqual([target, status])
  })
})

describe('connect-style', () => {
  async function guarded(next: (error?: unknown) => unknown, options: object = {}) {
    const store = watchedStore()
    const guard = githubWebhook({ secret, store, ...options } as NodeWebhookOptions)
    return { store, server: await start((req, res) => guard(req, res, next)) }
  }

  test('requests to other paths go on untouched', async () => {
    const store = watchedStore()
    const guard = githubWebhook({ secret, store, path: '/webhooks/github' })
    const server = await start((req, res) =>
      guard(req, res, () => res.end(req.webhook === undefined ? 'elsewhere' : 'ours')),
    )
    expect((await server.send(delivery(), '/other')).text).toBe('elsewhere')
    expect((await server.send(delivery(), '/webhooks/github?x')).text).toBe('ours')
    expect(store.calls).toEqual(['claim', 'complete'])
  })

  test('what next throws or rejects with is the handler’s error', async () => {
    for (const fail of [
      (error: Error) => {
        throw error
      },
      (error: Error) => Promise.reject(error),
    ]) {
      for (const [error, status, state] of [
        [new Error('database away'), 500, 'failed'],
        [new PermanentError('no such customer'), 422, 'dead'],
      ] as const) {
        const { server, store } = await guarded(() => fail(error))
        const request = delivery()
        const response = await server.send(request)
        expect([response.status, (await store.settled(request.key)).state]).toEqual([status, state])
        expect(response.text).toBe('')
      }
    }
  })

  test('an error after the head breaks the answer off', async () => {
    for (const [error, state] of [
      [new Error('database away'), 'failed'],
      [new PermanentError('no such customer'), 'dead'],
    ] as const) {
      const store = watchedStore()
      const guard = githubWebhook({ secret, store })
      const server = await start((req, res) =>
        guard(req, res, () => {
          res.write('hel')
          throw error
        }),
      )
      const request = delivery()
      await expect(server.send(request)).rejects.toThrow('closed after')
      expect((await store.settled(request.key)).state).toBe(state)
    }
  })

  test('a secret that cannot be looked up is 503, not an error', async () => {
    const { server } = await guarded(() => {}, {
      secret: () => Promise.reject(new Error('vault away')),
    })
    expect((await server.send(delivery())).status).toBe(503)
  })

  test('somebody who answers while the claim is asked for keeps the handler from running', async () => {
    const store = watchedStore()
    const guard = githubWebhook({ secret, store })
    const claim = store.claim
    const asked = gate()
    const answered = gate()
    store.claim = async (entries) => {
      asked.open()
      await answered.opened
      return claim(entries)
    }
    let ran = false
    const server = await start((req, res) => {
      guard(req, res, () => {
        ran = true
      })
      asked.opened.then(() => {
        res.writeHead(504).end()
        answered.open()
      })
    })
    const request = delivery()
    expect((await server.send(request)).status).toBe(504)
    expect((await store.settled(request.key)).state).toBe('failed')
    expect(ran).toBe(false)
  })

  test('401 and 403 of a later guard, 404 and 405: to be run again, never dead', async () => {
    for (const status of [401, 403, 404, 405]) {
      const heard = recorder()
      const store = watchedStore()
      const guard = githubWebhook({ secret, store, observer: heard.observer })
      let attempt = 0
      const server = await start((req, res) =>
        guard(req, res, () => {
          attempt = req.webhook?.attempt ?? 0
          res.writeHead(attempt === 1 ? status : 200).end()
        }),
      )
      const request = delivery()
      expect((await server.send(request)).status).toBe(status)
      expect((await store.settled(request.key)).state).toBe('failed')
      expect(heard.types().includes('no_handler')).toBe(status === 404 || status === 405)
      expect((await server.send(request)).status).toBe(200)
      expect(attempt).toBe(2)
    }
  })
})

describe('requests that are not quite Node’s', () => {
  test('a socket that is a plain object, as serverless adapters make it', async () => {
    const store = watchedStore()
    const guard = githubWebhook({ secret, store })
    const server = await start((req, res) => {
      Object.defineProperty(req, 'socket', { value: { remoteAddress: '203.0.113.7' } })
      guard(req, res, () => res.end('hello'))
    })
    const request = delivery()
    const response = await server.send(request)
    expect([response.status, response.text]).toEqual([200, 'hello'])
    expect((await store.settled(request.key)).state).toBe('completed')
  })

  test('a status that is a text means what it says', async () => {
    const store = watchedStore()
    const guard = githubWebhook({ secret, store })
    const server = await start((req, res) =>
      guard(req, res, () => {
        Object.assign(res, { statusCode: '422' })
        res.end()
      }),
    )
    const request = delivery()
    expect((await server.send(request)).status).toBe(422)
    expect((await store.settled(request.key)).state).toBe('dead')
  })
})

describe('mistakes', () => {
  const store = watchedStore()

  test('are told at construction', () => {
    const wrong: [object, RegExp][] = [
      [{ secret, store, maxHeldResponseBytes: 0 }, /"maxHeldResponseBytes" must be a positive/],
      [{ secret, store, maxHeldResponseBytes: '1mb' }, /"maxHeldResponseBytes" must be a positive/],
      [{ secret, store, path: 'webhooks' }, /"path" must begin with "\/"/],
      [{ secret, store, pathh: '/' }, /unknown option "pathh"\. Did you mean "path"/],
      [{ secret: '', store }, /secret/],
      [{ secret }, /store/],
    ]
    for (const [options, message] of wrong)
      expect(() => githubWebhook(options as NodeWebhookOptions)).toThrow(message)
    expect(() =>
      webhook({ secret, store, provider: 'githup' } as never as Parameters<typeof webhook>[0]),
    ).toThrow(/githup/)
  })

  test('nobody to run the delivery', () => {
    const guard = githubWebhook({ secret, store })
    expect(() => Reflect.apply(guard, undefined, [{}, {}])).toThrow(
      /Pass handler: .*third argument/,
    )
  })

  test('getWebhook on a route without the middleware', () => {
    expect(() => getWebhook({})).toThrow(expect.objectContaining({ code: 'ERR_NO_WEBHOOK' }))
    expect(() => getWebhook({})).toThrow(/Mount githubWebhook/)
  })
})
