import Router from '@koa/router'
import { type GitHubDelivery, hasCode, memoryStore } from '@webhook-inbox/core'
import { getWebhook, githubWebhook, type WebhookState } from '@webhook-inbox/koa'
import mount from 'koa-mount'
import { afterEach, describe, expect, expectTypeOf, test } from 'vitest'
import { delivery, recorder, secret, watchedStore } from '../../node/test/support.ts'
import { closeAll, listen, versions } from './versions.ts'

afterEach(closeAll)

const path = '/webhooks/github'
const methods = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']

describe.each(versions)('%s: where it stands', (_name, Koa) => {
  test('types and gives the delivery to what is chained', async () => {
    const app = new Koa().use(githubWebhook({ secret, store: memoryStore() })).use((ctx) => {
      const { webhook } = ctx.state
      ctx.body = [webhook.event === 'push' ? webhook.payload.ref : '', getWebhook(ctx).id]
    })
    new Koa<WebhookState<GitHubDelivery<'push'>>>().use((ctx) => {
      expectTypeOf(ctx.state.webhook.payload.ref).toBeString()
    })
    const server = await listen(app)
    const request = delivery('{"ref":"refs/heads/main"}')
    expect(JSON.parse((await server.send(request)).text)).toEqual(['refs/heads/main', request.id])
  })

  test('getWebhook says what is missing', async () => {
    let thrown: unknown
    const app = new Koa().use((ctx) => {
      try {
        getWebhook(ctx)
      } catch (error) {
        thrown = error
      }
    })
    const server = await listen(app)
    await server.send(delivery())
    expect(hasCode(thrown, 'ERR_NO_WEBHOOK')).toBe(true)
  })

  test('runs the option handler in place of what follows, with the context', async () => {
    const app = new Koa().use(
      githubWebhook({
        secret,
        store: memoryStore(),
        handler: (webhook, ctx) => ctx.set('x-ran', webhook.id),
      }),
    )
    const server = await listen(app)
    const request = delivery()
    const response = await server.send(request)
    expect([response.status, response.header('x-ran')]).toEqual([200, request.id])
    expect(JSON.parse(response.text)).toEqual({ status: 'completed', deliveryId: request.id })
  })

  test('a route that is guarded twice runs once for each delivery', async () => {
    const store = watchedStore()
    const guard = githubWebhook({ secret, store })
    const app = new Koa()
      .use(guard)
      .use(guard)
      .use((ctx) => {
        ctx.body = [ctx.state.webhook.attempt]
      })
    const server = await listen(app)
    const request = delivery()
    expect((await server.send(request)).text).toBe('[1]')
    expect((await server.send(request)).header('webhook-inbox-status')).toBe('completed')
    expect(store.calls.filter((name) => name === 'complete')).toHaveLength(1)
  })

  test.each(methods)('answers 405 to %s on its path', async (method) => {
    const app = new Koa().use(githubWebhook({ secret, store: memoryStore(), path }))
    const { port } = await listen(app)
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { method })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST'])
  })

  test.each(methods)('leaves %s on another path to the app', async (method) => {
    const app = new Koa().use(githubWebhook({ secret, store: memoryStore(), path })).use((ctx) => {
      ctx.body = 'mine'
    })
    const { port } = await listen(app)
    const response = await fetch(`http://127.0.0.1:${port}/other`, { method })
    expect([response.status, response.headers.get('webhook-inbox-status')]).toEqual([200, null])
  })

  test('compares the path without the query and one trailing slash', async () => {
    const app = new Koa().use(githubWebhook({ secret, store: memoryStore(), path })).use((ctx) => {
      ctx.body = ctx.state.webhook?.id ?? 'next'
    })
    const server = await listen(app)
    for (const target of [path, `${path}/`, `${path}?a=1`, `${path}/?a=/x`]) {
      const request = delivery()
      expect((await server.send(request, target)).text).toBe(request.id)
    }
    for (const target of [`${path}//`, `${path}/x`, '/', `/x?${path}`]) {
      expect((await server.send(delivery(), target)).text).toBe('next')
    }
  })

  test('what a route takes for the path is ours: nothing gets past us by another spelling', async () => {
    const router = new Router()
    router.post(path, (ctx) => {
      ctx.body = 'ran'
    })
    const guard = githubWebhook({ secret, store: memoryStore(), path })
    const app = new Koa()
    app.use(guard)
    app.use(router.routes())
    const server = await listen(app)
    const forged = delivery('{}', {}, 'another secret')
    for (const target of [path, `${path}/`, '/WEBHOOKS/GITHUB', '/Webhooks/GitHub/?x=1'])
      expect([target, (await server.send(forged, target)).status]).toEqual([target, 401])
    for (const target of [`${path}//`, '/webhooks//github', '/webhooks/githu%62', `/.${path}`])
      expect([target, (await server.send(forged, target)).status]).toEqual([target, 404])
  })

  test('sees a path relative to a koa-mount, and tells the secret lookup the whole', async () => {
    const urls: string[] = []
    const inner = new Koa()
      .use(
        githubWebhook({
          secret: ({ url }) => {
            urls.push(url)
            return secret
          },
          store: memoryStore(),
          path: '/github',
        }),
      )
      .use((ctx) => {
        ctx.body = ctx.state.webhook?.id ?? 'next'
      })
    const app = new Koa().use(mount('/webhooks', inner))
    const server = await listen(app)
    const request = delivery()
    expect((await server.send(request, `${path}?hook=1`)).text).toBe(request.id)
    expect((await server.send(delivery(), '/webhooks/other')).text).toBe('next')
    expect((await server.send(delivery(), '/webhooks/github', 'GET')).status).toBe(405)
    expect(urls).toEqual([`${path}?hook=1`])
  })

  test('guards a route of @koa/router, nested or not, by its absolute path', async () => {
    const router = new Router({ prefix: '/webhooks' })
    router.post('/github', githubWebhook({ secret, store: memoryStore() }), (ctx) => {
      ctx.body = ctx.state.webhook.id
    })
    const nested = new Router()
    nested.use(githubWebhook({ secret, store: memoryStore(), path: '/api/hook' }))
    nested.post('/hook', (ctx) => {
      ctx.body = ctx.state.webhook.id
    })
    const outer = new Router().use('/api', nested.routes())
    const app = new Koa()
    app.use(router.routes())
    app.use(router.allowedMethods())
    app.use(outer.routes())
    const server = await listen(app)
    for (const target of [path, '/api/hook']) {
      const request = delivery()
      expect((await server.send(request, target)).text).toBe(request.id)
      expect((await server.send(request, target)).status).toBe(200)
    }
    const response = await server.send(delivery(''), path, 'GET')
    expect([response.status, response.header('webhook-inbox-status')]).toEqual([405, undefined])
  })

  test('a route that is not there is to be run again, and the observer hears why', async () => {
    const store = watchedStore()
    const { observer, types } = recorder()
    const app = new Koa().use(githubWebhook({ secret, store, path, observer }))
    const server = await listen(app)
    const request = delivery()
    expect((await server.send(request)).status).toBe(404)
    expect((await store.settled(request.key)).state).toBe('failed')
    expect(types()).toContain('no_handler')
  })

  test('headers set before us stay on every answer', async () => {
    const app = new Koa()
      .use((ctx, next) => {
        ctx.set('x-request-id', '7')
        return next()
      })
      .use(githubWebhook({ secret, store: memoryStore() }))
      .use((ctx) => {
        ctx.state.webhook.fail()
        ctx.body = 'ran'
      })
    const server = await listen(app)
    for (const request of [delivery(), delivery('{}', {}, 'another secret')]) {
      expect((await server.send(request)).header('x-request-id')).toBe('7')
    }
  })
})

describe('options', () => {
  const store = memoryStore()

  test.each([
    [{ store }, '"secret"'],
    [{ secret: ' ', store }, '"secret"'],
    [{ secret }, '"store" is missing'],
    [{ secret, store, sercet: secret }, 'Did you mean "secret"?'],
    [{ secret, store, path: 'webhooks' }, 'must begin with "/"'],
    [{ secret, store, paht: '/webhooks' }, 'Did you mean "path"?'],
    [{ secret, store, maxHeldResponseBytes: 0 }, '"maxHeldResponseBytes"'],
    [undefined, '"secret"'],
  ])('are refused at construction: %o', (options, message) => {
    let thrown: unknown
    try {
      Reflect.apply(githubWebhook, undefined, [options])
    } catch (error) {
      thrown = error
    }
    expect(hasCode(thrown, 'ERR_OPTION')).toBe(true)
    expect(String(thrown)).toContain(message)
  })
})
