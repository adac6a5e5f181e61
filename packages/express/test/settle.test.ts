import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { type ExpressWebhookOptions, githubWebhook, PermanentError } from '@webhook-inbox/express'
import compression from 'compression'
import type { ErrorRequestHandler, Express, RequestHandler, Response } from 'express'
import session from 'express-session'
import morgan from 'morgan'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import {
  bytesOf,
  delivery,
  gate,
  recorder,
  type SignedRequest,
  secret,
  type WireResponse,
  watchedStore,
} from '../../node/test/support.ts'
import { closeAll, listen, versions } from './versions.ts'

const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-'))
const file = join(folder, 'answer.txt')
const long = 'a long answer, long enough to be worth compressing. '.repeat(100)
writeFileSync(file, long)
const largeFile = join(folder, 'large.txt')
writeFileSync(largeFile, Buffer.alloc(16 * 1024 * 1024))

afterEach(closeAll)
afterAll(() => rmSync(folder, { recursive: true }))

const path = '/webhooks/github'

describe.each(versions)('%s: settled before answered', (_name, express) => {
  interface Outcome {
    readonly response: WireResponse
    readonly state: string
    readonly code: string | undefined
  }

  /** Sends one delivery with the settlement held back, expects silence, then lets it go. */
  async function outcome(
    build: (app: Express, guard: RequestHandler) => void,
    {
      request = delivery(),
      options = {},
    }: { request?: SignedRequest; options?: Partial<ExpressWebhookOptions> } = {},
  ): Promise<Outcome> {
    const store = watchedStore()
    const app = express()
    build(app, githubWebhook({ secret, store, ...options } as ExpressWebhookOptions))
    app.use(((_error, _req, res, next) => {
      if (res.headersSent) next(_error)
      else res.status(_error.status ?? 500).send('failed')
    }) satisfies ErrorRequestHandler)
    const server = await listen(app)
    const held = store.holdSettlements()
    const wire = await server.wire()
    await wire.send(bytesOf(request))
    await store.settling()
    expect((await server.send(delivery('{}', {}, 'another secret'))).status).toBe(401)
    expect(wire.received().toString()).toBe('')
    held.open()
    const response = await wire.response()
    const { state, code } = await store.settled(request.key)
    return { response, state, code }
  }

  const routes: Record<
    string,
    { route: RequestHandler; status?: number; text?: string; state?: string }
  > = {
    send: { route: (_, res) => res.send('hello') },
    json: { route: (_, res) => res.json({ ok: true }), text: '{"ok":true}' },
    'sendStatus(204)': { route: (_, res) => res.sendStatus(204), status: 204, text: '' },
    redirect: {
      route: (_, res) => res.redirect(303, '/elsewhere'),
      status: 303,
      text: 'See Other. Redirecting to /elsewhere',
    },
    'writeHead, write, end': {
      route(_, res) {
        res.writeHead(202, { 'content-type': 'text/plain' })
        res.write('hel')
        res.write('lo')
        res.end()
      },
      status: 202,
    },
    'a stream': { route: (_, res) => Readable.from(['hel', 'lo']).pipe(res) },
    sendFile: { route: (_, res) => res.sendFile(file), text: long },
    'json, then next()': {
      route(_, res, next) {
        res.json({ ok: true })
        next()
      },
      text: '{"ok":true}',
    },
    'json, then an error': {
      route(_, res) {
        res.json({ ok: true })
        throw new Error('too late')
      },
      text: '{"ok":true}',
    },
    'two answers': {
      route(_, res) {
        res.send('hello')
        res.send('again')
      },
    },
    'a second end': {
      route(_, res) {
        res.send('hello')
        res.end()
      },
    },
    'an error': {
      route() {
        throw new Error('database away')
      },
      status: 500,
      text: 'failed',
      state: 'failed',
    },
    'next(error)': {
      route: (_, _res, next) => next(new Error('database away')),
      status: 500,
      text: 'failed',
      state: 'failed',
    },
    'a PermanentError': {
      route: (_, _res, next) => next(new PermanentError('no such customer')),
      status: 422,
      text: 'failed',
      state: 'dead',
    },
    'a status of its own': {
      route: (_, res) => res.status(410).send('gone'),
      status: 410,
      text: 'gone',
      state: 'dead',
    },
  }
  for (const [name, { route, status = 200, text = 'hello', state = 'completed' }] of Object.entries(
    routes,
  )) {
    test(name, async () => {
      const found = await outcome((app, guard) => app.post(path, guard, route))
      expect([found.response.status, found.response.text, found.state]).toEqual([
        status,
        text,
        state,
      ])
      expect(found.response.header('webhook-inbox-status')).toBe(state)
    })
  }

  test('the error handler of Express itself', async () => {
    const store = watchedStore()
    const app = express()
    app.set('env', 'test')
    app.post(path, githubWebhook({ secret, store }), (_req, _res, next) => {
      next(new PermanentError('no such customer'))
    })
    const server = await listen(app)
    const request = delivery()
    const response = await server.send(request, path)
    expect([response.status, (await store.settled(request.key)).state]).toEqual([422, 'dead'])
  })

  test('an async handler', async () => {
    const found = await outcome((app, guard) =>
      app.post(path, guard, async (_req, res, next) => {
        try {
          await Promise.reject(new Error('database away'))
          res.send('never')
        } catch (error) {
          next(error)
        }
      }),
    )
    expect([found.response.status, found.state]).toEqual([500, 'failed'])
  })

  test('a later 401 or 403 and a route that is not there are to be run again', async () => {
    for (const [status, code] of [
      [401, 'status_401'],
      [403, 'status_403'],
    ] as const) {
      const found = await outcome((app, guard) =>
        app.post(path, guard, (_, res: Response) => void res.sendStatus(status)),
      )
      expect([found.response.status, found.state, found.code]).toEqual([status, 'failed', code])
    }
    const heard = recorder()
    const found = await outcome((app, guard) => app.use(path, guard), {
      options: { observer: heard.observer },
    })
    expect([found.response.status, found.state, found.code]).toEqual([404, 'failed', 'status_404'])
    expect(heard.types()).toContain('no_handler')
  })

  describe('with other middleware', () => {
    const bodies = {
      send: (_: unknown, res: Response) => void res.type('text').send(long),
      sendFile: (_: unknown, res: Response) => res.sendFile(file),
      stream: (_: unknown, res: Response) => {
        res.type('text')
        Readable.from(long.match(/.{1,50}/g) ?? []).pipe(res)
      },
      write(_: unknown, res: Response) {
        res.type('text')
        res.write(long.slice(0, 2000))
        res.end(long.slice(2000))
      },
    }
    for (const where of ['before', 'after']) {
      for (const encoding of ['gzip', 'br']) {
        for (const [name, route] of Object.entries(bodies)) {
          test(`compression ${where} us, ${encoding}, ${name}`, async () => {
            const request = delivery('{}', { 'accept-encoding': encoding })
            const { response, state } = await outcome(
              (app, guard) => {
                if (where === 'before') app.use(compression())
                app.use(path, guard)
                if (where === 'after') app.use(compression())
                app.post(path, route)
              },
              { request },
            )
            expect(response.header('content-encoding')).toBe(encoding)
            const plain = encoding === 'gzip' ? gunzipSync : brotliDecompressSync
            expect(plain(response.body).toString()).toBe(long)
            expect([response.status, state]).toEqual([200, 'completed'])
            expect(response.header('webhook-inbox-status')).toBe('completed')
          })
        }
      }
    }

    test('morgan logs the status that the sender got', async () => {
      for (const where of ['before', 'after']) {
        const logged = gate()
        let line = ''
        const log = morgan(':status :res[webhook-inbox-status]', {
          stream: {
            write(text) {
              if (!text.startsWith('401')) {
                line = text.trim()
                logged.open()
              }
            },
          },
        })
        await outcome((app, guard) => {
          if (where === 'before') app.use(log)
          app.use(path, guard)
          if (where === 'after') app.use(log)
          app.post(path, (req, res) => {
            req.webhook?.fail()
            res.json({ ok: true })
          })
        })
        await logged.opened
        expect(line).toBe('503 failed')
      }
    })

    test('express-session before and after us', async () => {
      for (const where of ['before', 'after']) {
        const cookies = session({ secret: 'cookie', resave: true, saveUninitialized: true })
        const { response, state } = await outcome((app, guard) => {
          if (where === 'before') app.use(cookies)
          app.use(path, guard)
          if (where === 'after') app.use(cookies)
          app.post(path, (_, res) => void res.send('hello'))
        })
        expect([response.status, response.text, state]).toEqual([200, 'hello', 'completed'])
        expect(response.header('set-cookie')).toContain('connect.sid')
      }
    })
  })

  test('a second end behind express-session', async () => {
    const app = express()
    const cookies = session({ secret: 'cookie', resave: true, saveUninitialized: true })
    app.use(cookies, githubWebhook({ secret, store: watchedStore() }))
    app.post(path, (_, res) => {
      res.on('error', () => {})
      res.end('first')
      res.end('second')
    })
    const response = await (await listen(app)).send(delivery(), path)
    expect([response.status, response.text]).toEqual([200, 'first'])
    expect(response.header('set-cookie')).toContain('connect.sid')
  })

  test('compression behind us sees a head that is flushed early', async () => {
    const app = express()
    app.use(githubWebhook({ secret, store: watchedStore() }), compression())
    app.post(path, (_, res) => {
      res.type('txt').flushHeaders()
      res.end(long)
    })
    const request = delivery('{}', { 'accept-encoding': 'gzip' })
    const response = await (await listen(app)).send(request, path)
    expect(response.header('content-encoding')).toBe('gzip')
    expect(gunzipSync(response.body).toString()).toBe(long)
  })

  test('a pipeline of requests on one connection', async () => {
    const store = watchedStore()
    const app = express()
    app.post(path, githubWebhook({ secret, store }), (req, res) => void res.send(req.webhook?.id))
    const server = await listen(app)
    const requests = [delivery(), delivery(), delivery()]
    const held = store.holdSettlements()
    const wire = await server.wire()
    await wire.send(Buffer.concat(requests.map((request) => bytesOf(request, path))))
    await store.settling(3)
    expect((await server.send(delivery('{}', {}, 'another secret'), path)).status).toBe(401)
    expect(wire.received()).toHaveLength(0)
    held.open()
    for (const { id } of requests) expect((await wire.response()).text).toBe(id)
  })

  test('a handler that fails after its time is over hits no other request', async () => {
    const late = gate()
    const failed = gate()
    const store = watchedStore()
    const app = express()
    app.set('env', 'test')
    app.post(path, githubWebhook({ secret, store, maxRunMs: 20 }), async (_req, res, next) => {
      await late.opened
      try {
        res.status(200).json({ ok: true })
      } catch (error) {
        next(error)
        failed.open()
      }
    })
    const server = await listen(app)
    const wire = await server.wire()
    await wire.send(bytesOf(delivery(), path))
    const response = await wire.response()
    expect([response.status, response.header('connection')]).toEqual([503, 'close'])
    await wire.closed
    late.open()
    await failed.opened
  })

  describe('when the sender hangs up', () => {
    /** Runs the route after its sender has left. */
    async function afterHangUp(route: RequestHandler) {
      const store = watchedStore()
      const running = gate()
      const app = express()
      app.post(path, githubWebhook({ secret, store }), (req, res, next) => {
        res.once('close', () => route(req, res, next))
        running.open()
      })
      const server = await listen(app)
      const wire = await server.wire()
      const request = delivery()
      await wire.send(bytesOf(request, path))
      await running.opened
      wire.destroy()
      return store.settled(request.key)
    }

    const ends: [string, RequestHandler, string][] = [
      ['send', (_, res) => void res.send('hello'), 'completed'],
      ['an error status', (_, res) => void res.status(500).send('no'), 'failed'],
      ['sendFile', (_, res) => res.sendFile(file), 'completed'],
      ['a stream', (_, res) => void Readable.from(['hel', 'lo']).pipe(res), 'completed'],
    ]
    for (const [name, route, state] of ends) {
      test(`${name} decides`, async () => {
        expect((await afterHangUp(route)).state).toBe(state)
      })
    }

    test('while a file is sent, its status decides', async () => {
      const store = watchedStore()
      const sending = gate()
      const app = express()
      app.post(path, githubWebhook({ secret, store }), (_, res) => {
        res.once('pipe', () => sending.open())
        res.sendFile(largeFile)
      })
      const server = await listen(app)
      const wire = await server.wire()
      wire.socket.pause()
      const request = delivery()
      await wire.send(bytesOf(request, path))
      await sending.opened
      wire.destroy()
      expect((await store.settled(request.key)).state).toBe('completed')
    })
  })
})
