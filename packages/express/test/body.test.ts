import { captureRawBody, githubWebhook } from '@webhook-inbox/express'
import type { RequestHandler } from 'express'
import { afterEach, describe, expect, test } from 'vitest'
import { bytesOf, delivery, secret, watchedStore } from '../../node/test/support.ts'
import { closeAll, listen, versions } from './versions.ts'

afterEach(closeAll)

const path = '/webhooks/github'
const text = '{"action":"opened","title":"café 🎉"}'
const form = { 'content-type': 'application/x-www-form-urlencoded' }

describe.each(versions)('%s', (_name, express) => {
  describe('a parser before us', () => {
    /** Sends one delivery through `before` and tells what the handler got. */
    async function through(
      before: RequestHandler[],
      body: string | Uint8Array = text,
      headers: Readonly<Record<string, string>> = {},
    ) {
      const store = watchedStore()
      const app = express()
      for (const parser of before) app.use(parser)
      let seen: unknown
      app.post(path, githubWebhook({ secret, store }), (req, res) => {
        seen = { raw: Buffer.from(req.rawBody ?? []).toString(), body: req.body }
        res.sendStatus(204)
      })
      const server = await listen(app)
      const response = await server.send(delivery(body, headers), path)
      return { seen, status: response.status, text: response.text, store }
    }

    const right = { raw: text, body: JSON.parse(text) }

    const capturing: [string, RequestHandler][] = [
      ['express.json with captureRawBody', express.json({ verify: captureRawBody })],
      ['express.raw', express.raw({ type: '*/*' })],
      ['express.raw with captureRawBody', express.raw({ type: '*/*', verify: captureRawBody })],
      ['express.text', express.text({ type: '*/*' })],
      ['express.text with captureRawBody', express.text({ type: '*/*', verify: captureRawBody })],
      ['express.json for another type', express.json({ type: 'application/vnd.other+json' })],
      ['express.urlencoded for another type', express.urlencoded({ extended: true })],
    ]
    for (const [name, parser] of capturing) {
      test(`${name}: right`, async () => {
        const { seen, status } = await through([parser])
        expect(status).toBe(204)
        expect(seen).toEqual(right)
      })
    }

    test('a form that express.urlencoded has read with captureRawBody: right', async () => {
      const body = `payload=${encodeURIComponent(text)}`
      const parser = express.urlencoded({ extended: true, verify: captureRawBody })
      const { seen, status } = await through([parser], body, form)
      expect([status, seen]).toEqual([204, { raw: body, body: JSON.parse(text) }])
    })

    /** What a platform does that has read the stream and shows the body in its own way. */
    const platform =
      (properties: (bytes: Buffer) => PropertyDescriptorMap): RequestHandler =>
      async (req, _res, next) => {
        const chunks: Buffer[] = []
        for await (const chunk of req) chunks.push(chunk)
        Object.defineProperties(req, properties(Buffer.concat(chunks)))
        next()
      }

    test.each<[string, (bytes: Buffer) => PropertyDescriptorMap]>([
      ['bytes that only read', (bytes) => ({ rawBody: { configurable: true, get: () => bytes } })],
      [
        'a body that only reads',
        (bytes) => ({
          rawBody: { value: bytes },
          body: { configurable: true, get: () => JSON.parse(bytes.toString()) },
        }),
      ],
      [
        'a body that throws',
        (bytes) => ({
          rawBody: { value: bytes },
          body: {
            configurable: true,
            get() {
              throw new SyntaxError('Invalid JSON')
            },
          },
        }),
      ],
    ])('a platform that leaves %s: right', async (_, properties) => {
      const { seen, status } = await through([platform(properties)])
      expect([status, seen]).toEqual([204, right])
    })

    test('a platform that leaves a body that throws, and no bytes: 500 with the fix', async () => {
      const body = {
        get() {
          throw new SyntaxError('Invalid JSON')
        },
      }
      const { status, text, store } = await through([platform(() => ({ body }))])
      expect([status, JSON.parse(text).code]).toEqual([500, 'ERR_BODY_CONSUMED'])
      expect(store.calls).toEqual([])
    })

    const consuming: [string, RequestHandler, (string | Uint8Array)?, Record<string, string>?][] = [
      ['express.json', express.json()],
      [
        'express.urlencoded',
        express.urlencoded({ extended: true }),
        `payload=${encodeURIComponent(text)}`,
        form,
      ],
      ['express.text that replaced bytes', express.text({ type: '*/*' }), Uint8Array.of(123, 255)],
      [
        'express.text that took a byte order mark off',
        express.text({ type: '*/*' }),
        `\uFEFF${text}`,
      ],
      [
        'express.text in another charset',
        express.text({ type: '*/*' }),
        text,
        { 'content-type': 'application/json; charset=latin1' },
      ],
      [
        'a middleware that drained the stream',
        (req, _res, next) => void req.resume().once('end', () => next()),
      ],
      [
        "a middleware that left a 'readable' listener",
        (req, _res, next) => {
          req.on('readable', () => {})
          next()
        },
      ],
      [
        'a middleware that set an encoding',
        (req, _res, next) => {
          req.setEncoding('utf8')
          next()
        },
      ],
    ]
    for (const [name, parser, body = text, headers = {}] of consuming) {
      test(`${name}: a 500 at once that names the fix`, async () => {
        const { seen, status, text: answer, store } = await through([parser], body, headers)
        expect([status, seen]).toEqual([500, undefined])
        expect(JSON.parse(answer)).toMatchObject({
          code: 'ERR_BODY_CONSUMED',
          detail: expect.stringContaining('express.json({ verify: captureRawBody })'),
        })
        expect(store.calls).toEqual([])
      })
    }

    test('express.json that found an empty body leaves the empty body', async () => {
      const { seen, status } = await through([express.json()], '')
      expect([status, seen]).toEqual([204, { raw: '', body: undefined }])
    })

    test('a request that is only paused is read', async () => {
      const { seen } = await through([
        (req, _res, next) => {
          req.pause()
          next()
        },
      ])
      expect(seen).toEqual(right)
    })
  })

  describe('a parser after us', () => {
    for (const [name, parser] of [
      ['express.json', express.json()],
      ['express.raw', express.raw({ type: '*/*' })],
      ['express.text', express.text({ type: '*/*' })],
      ['express.urlencoded', express.urlencoded({ extended: true })],
    ] as const) {
      test(`${name} leaves the payload`, async () => {
        const app = express()
        let seen: unknown
        app.post(path, githubWebhook({ secret, store: watchedStore() }), parser, (req, res) => {
          seen = req.body
          res.sendStatus(204)
        })
        const server = await listen(app)
        const wire = await server.wire()
        for (const request of [
          delivery(text),
          delivery(`payload=${encodeURIComponent(text)}`, form),
        ]) {
          seen = undefined
          await wire.send(bytesOf(request, path))
          expect((await wire.response()).status).toBe(204)
          expect(seen).toEqual(JSON.parse(text))
        }
      })
    }

    test('bytes that are no JSON leave the body undefined, and the parser alone', async () => {
      const app = express()
      const seen: unknown[] = []
      app.post(
        path,
        githubWebhook({ secret, store: watchedStore() }),
        express.json(),
        (req, res) => {
          seen.push(req.body, Buffer.from(req.rawBody ?? []).toString())
          res.sendStatus(204)
        },
      )
      const server = await listen(app)
      expect((await server.send(delivery('not json'), path)).status).toBe(204)
      expect(seen).toEqual([undefined, 'not json'])
    })

    test('scalars and null are payloads', async () => {
      for (const payload of [0, false, null, '', [1]]) {
        const app = express()
        let seen: unknown
        app.post(
          path,
          githubWebhook({ secret, store: watchedStore() }),
          express.json(),
          (req, res) => {
            seen = req.body
            res.sendStatus(204)
          },
        )
        const server = await listen(app)
        expect((await server.send(delivery(JSON.stringify(payload)), path)).status).toBe(204)
        expect(seen).toEqual(payload)
      }
    })
  })
})
