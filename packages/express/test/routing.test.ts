import {
  type ExpressWebhookOptions,
  getWebhook,
  githubWebhook,
  PermanentError,
  webhook,
} from '@webhook-inbox/express'
import { afterEach, describe, expect, test } from 'vitest'
import { bytesOf, delivery, gate, secret, watchedStore } from '../../node/test/support.ts'
import { closeAll, listen, versions } from './versions.ts'

afterEach(closeAll)

const path = '/webhooks/github'

describe.each(versions)('%s', (_name, express) => {
  test('a route, its query, its slash and its case are the router’s', async () => {
    const app = express()
    app.post(path, githubWebhook({ secret, store: watchedStore() }), (req, res) => {
      res.send(getWebhook(req).event)
    })
    const server = await listen(app)
    for (const target of [path, `${path}/`, `${path}?x=1`, '/Webhooks/GitHub'])
      expect((await server.send(delivery(), target)).text).toBe('push')
    for (const method of ['GET', 'PUT']) {
      const response = await server.send(delivery(''), path, method)
      expect([response.status, response.header('webhook-inbox-status')]).toEqual([404, undefined])
    }
  })

  test('the option path: ours with a query and a slash, 405 for other methods, the rest goes on', async () => {
    const app = express()
    app.use(githubWebhook({ secret, store: watchedStore(), path }))
    app.use((req, res) => void res.send(req.webhook === undefined ? 'elsewhere' : 'ours'))
    const server = await listen(app)
    for (const target of [path, `${path}/`, `${path}?x=1`])
      expect((await server.send(delivery(), target)).text).toBe('ours')
    for (const target of ['/', `${path}s`, '/webhooks'])
      expect((await server.send(delivery(), target)).text).toBe('elsewhere')
    for (const method of ['GET', 'PUT', 'DELETE', 'OPTIONS']) {
      const response = await server.send(delivery(''), path, method)
      expect([response.status, response.header('allow')]).toEqual([405, 'POST'])
      expect(JSON.parse(response.text).code).toBe('method_not_allowed')
    }
    const wire = await server.wire()
    await wire.send(bytesOf(delivery(''), path, 'HEAD'))
    wire.socket.end()
    await wire.closed
    expect(wire.received().toString()).toMatch(/^HTTP\/1\.1 405 [\s\S]*\r\n\r\n$/)
  })

  test('what a route takes for the path is ours: nothing gets past us by another spelling', async () => {
    const app = express()
    app.use(githubWebhook({ secret, store: watchedStore(), path }))
    app.post(path, (_, res) => void res.send('ran'))
    const server = await listen(app)
    const forged = delivery('{}', {}, 'another secret')
    for (const target of [path, `${path}/`, '/WEBHOOKS/GITHUB', '/Webhooks/GitHub/?x=1'])
      expect([target, (await server.send(forged, target)).status]).toEqual([target, 401])
    for (const target of [`${path}//`, '/webhooks//github', '/webhooks/githu%62', `/.${path}`])
      expect([target, (await server.send(forged, target)).status]).toEqual([target, 404])
  })

  test('inside a mounted router the path is the one that the router shows', async () => {
    const store = watchedStore()
    const app = express()
    const router = express.Router()
    const urls: unknown[] = []
    router.use(
      githubWebhook({
        store,
        path: '/github',
        secret({ url }) {
          urls.push(url)
          return secret
        },
      }),
    )
    router.post('/github', (_req, res) => void res.send('ours'))
    app.use('/webhooks', router)
    const server = await listen(app)
    expect((await server.send(delivery(), path)).text).toBe('ours')
    expect((await server.send(delivery(), '/webhooks/other')).status).toBe(404)
    // The secret is looked up by the whole path: tenants are often in the mount point.
    expect(urls).toEqual([path])
  })

  test('a use mount owns its path: 405 and 404 are ours and the router’s', async () => {
    const app = express()
    app.use(path, githubWebhook({ secret, store: watchedStore() }))
    app.post(path, (_req, res) => void res.send('ours'))
    const server = await listen(app)
    expect((await server.send(delivery(), path)).text).toBe('ours')
    expect((await server.send(delivery(''), path, 'GET')).status).toBe(405)
    expect((await server.send(delivery(), '/elsewhere')).status).toBe(404)
  })

  test('copies are answered before the route handler runs', async () => {
    const store = watchedStore()
    const running = gate()
    const goOn = gate()
    let runs = 0
    const app = express()
    app.post(path, githubWebhook({ secret, store }), async (_req, res) => {
      runs += 1
      running.open()
      await goOn.opened
      res.send('hello')
    })
    const server = await listen(app)
    const request = delivery()
    const first = server.send(request, path)
    await running.opened
    const copies = await Promise.all(Array.from({ length: 49 }, () => server.send(request, path)))
    expect(copies.map(({ status }) => status)).toEqual(Array(49).fill(202))
    goOn.open()
    expect((await first).text).toBe('hello')
    const late = await server.send(request, path)
    expect([late.status, late.header('webhook-inbox-status')]).toEqual([200, 'completed'])
    expect(runs).toBe(1)
  })

  test('the option handler owns the delivery', async () => {
    const store = watchedStore()
    const app = express()
    app.post(
      path,
      webhook({
        provider: 'github',
        secret,
        store,
        async handler(delivered, { req, res }) {
          expect([req.path, res.headersSent]).toEqual([path, false])
          if (delivered.attempt === 1) throw new Error('database away')
          if (delivered.event === 'issues') throw new PermanentError('no such customer')
        },
      }),
    )
    const server = await listen(app)
    const push = delivery()
    const issues = delivery('{}', { 'x-github-event': 'issues' })
    const statuses = []
    for (const request of [push, push, push, issues, issues, issues])
      statuses.push((await server.send(request, path)).status)
    expect(statuses).toEqual([500, 200, 200, 500, 422, 202])
  })

  test('a route that is guarded twice runs once for each delivery', async () => {
    const store = watchedStore()
    const app = express()
    app.use(githubWebhook({ secret, store, path }))
    app.post(path, githubWebhook({ secret, store }), (req, res) => {
      res.json([req.body.zen, req.webhook?.attempt])
    })
    const server = await listen(app)
    const request = delivery('{"zen":"once"}')
    expect((await server.send(request)).text).toBe('["once",1]')
    expect((await server.send(request)).header('webhook-inbox-status')).toBe('completed')
    expect(store.calls.filter((name) => name === 'complete')).toHaveLength(1)
  })

  test('two endpoints with one store and two secrets', async () => {
    const store = watchedStore()
    const app = express()
    for (const name of ['a', 'b']) {
      app.post(
        `/${name}`,
        githubWebhook({ secret: `secret ${name}`, store, endpoint: name }),
        (req, res) => {
          res.send(req.webhook?.endpoint)
        },
      )
    }
    const server = await listen(app)
    const same = { 'x-github-delivery': 'same' }
    expect((await server.send(delivery('{}', same, 'secret a'), '/a')).text).toBe('a')
    expect((await server.send(delivery('{}', same, 'secret b'), '/b')).text).toBe('b')
    expect((await server.send(delivery('{}', same, 'secret a'), '/b')).status).toBe(401)
  })

  test('getWebhook on a route without the middleware names the fix', async () => {
    const app = express()
    let caught: unknown
    app.post(path, (req, res) => {
      try {
        getWebhook(req)
      } catch (error) {
        caught = error
      }
      res.sendStatus(204)
    })
    await (await listen(app)).send(delivery(), path)
    expect(caught).toMatchObject({
      code: 'ERR_NO_WEBHOOK',
      message: expect.stringContaining('Mount githubWebhook'),
    })
  })
})

test('mistakes are told at construction', () => {
  const store = watchedStore()
  const wrong: [object, RegExp][] = [
    [{ secret, store, maxHeldResponseBytes: -1 }, /"maxHeldResponseBytes" must be a positive/],
    [{ secret, store, path: 'webhooks' }, /"path" must begin with "\/"/],
    [{ secret, store, paht: '/webhooks' }, /unknown option "paht"\. Did you mean "path"/],
    [
      { secret, store, maxBodybytes: 1 },
      /unknown option "maxBodybytes"\. Did you mean "maxBodyBytes"/,
    ],
    [{ secret: ' ', store }, /secret/],
    [{ secret }, /store/],
  ]
  for (const [options, message] of wrong)
    expect(() => githubWebhook(options as ExpressWebhookOptions)).toThrow(message)
})
