import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { memoryStore, type ObserverEvent } from '@webhook-inbox/core'
import { githubWebhook, PermanentError } from '@webhook-inbox/hono'
import { type Context, Hono } from 'hono'
import { compress } from 'hono/compress'
import { streamSSE, streamText } from 'hono/streaming'
import { describe, expect, it } from 'vitest'
import { connect, gate, listen, recorder, secret, signed, wire, withOperations } from './support.ts'

const path = '/webhooks/github'
const encoder = new TextEncoder()

/** A store whose completions wait until the test lets them through. */
function gatedStore() {
  const store = memoryStore()
  const asked = gate()
  const completion = gate()
  const gated = withOperations(store, {
    async complete(...call) {
      asked.open()
      await completion.opened
      return store.complete(...call)
    },
  })
  return { store: gated, asked: asked.opened, letComplete: completion.open }
}

/** A response body that the test writes chunk by chunk. */
function manualBody() {
  let write = (_: string): void => {}
  let end = (_?: unknown): void => {}
  const cancelled = gate()
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      write = (text) => controller.enqueue(encoder.encode(text))
      end = (error) => (error === undefined ? controller.close() : controller.error(error))
    },
    cancel: cancelled.open,
  })
  return {
    body,
    write: (text: string) => write(text),
    end: (error?: unknown) => end(error),
    cancelled,
  }
}

/** An app with one guarded route, and what its observer heard. */
function guarded(
  handler: (c: Context) => Response | Promise<Response>,
  options: { maxHeldResponseBytes?: number; maxRunMs?: number } = {},
) {
  const store = memoryStore()
  const { events, heard, observer } = recorder()
  const app = new Hono()
  app.post(path, githubWebhook({ secret, store, observer, ...options }), handler)
  const types = (): ObserverEvent['type'][] => events.map(({ type }) => type)
  const state = async () => (await store.list()).records.map((record) => record.state)
  return { app, types, heard, state }
}

describe('not one byte leaves before the record is completed', () => {
  const long = 'x'.repeat(5000)
  it.each<[string, (c: Context) => Response | Promise<Response>, string]>([
    ['c.text()', (c) => c.text('the end'), 'the end'],
    ['c.json()', (c) => c.json({ at: 'the end' }), '{"at":"the end"}'],
    ['c.html()', (c) => c.html('<p>the end'), '<p>the end'],
    ['c.body(null, 204)', (c) => c.body(null, 204), 'HTTP/1.1 204'],
    ['an empty text with 204', () => new Response('', { status: 204 }), 'HTTP/1.1 204'],
    ['c.redirect()', (c) => c.redirect('/the-end'), 'location: /the-end'],
    ['new Response()', () => new Response(encoder.encode('the end')), 'the end'],
    ['a stream', () => new Response(new Blob(['the ', 'end']).stream()), 'the end'],
    ['text chunks', () => new Response(textChunks('the ', 'end')), 'the end'],
    [
      'streamText()',
      (c) => streamText(c, async (out) => void (await out.write('the end'))),
      'the end',
    ],
    [
      'streamSSE()',
      (c) => streamSSE(c, (out) => out.writeSSE({ data: 'the end' })),
      'data: the end',
    ],
    ['a content-length', (c) => c.body('the end', 200, { 'content-length': '7' }), 'the end'],
    ['a long text', (c) => c.text(long), long],
  ])('%s', async (_, handler, expected) => {
    const { store, asked, letComplete } = gatedStore()
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store }), handler)
    const { port } = await listen(app)
    const connection = connect(port)
    connection.send(wire(path, signed()))
    await asked
    await sleep(5) // time for a byte that should not come
    expect(connection.received()).toBe('')
    letComplete()
    await connection.until('webhook-inbox-status: completed')
    await connection.until(expected)
  })

  it.each<[string, (c: Context) => Response]>([
    ['streamText()', (c) => streamText(c, async (out) => void (await out.write('data: 1\n\n')))],
    ['streamSSE()', (c) => streamSSE(c, (out) => out.writeSSE({ data: '1' }))],
  ])('%s in a framing that a strict client reads', async (_, handler) => {
    const { app } = guarded(handler)
    const { url } = await listen(app)
    const response = await fetch(`${url}${path}`, signed())
    expect(await response.text()).toBe('data: 1\n\n')
  })

  it('with compression before and after us', async () => {
    for (const order of ['before', 'after'] as const) {
      const { store, asked, letComplete } = gatedStore()
      const app = new Hono()
      if (order === 'before') app.use(compress())
      app.use(path, githubWebhook({ secret, store }))
      if (order === 'after') app.use(compress())
      app.post(path, (c) => c.text(long))
      const { url } = await listen(app)
      let hasAnswer = false
      const request = signed(undefined, { 'accept-encoding': 'gzip' })
      const answered = fetch(url + path, request).finally(() => {
        hasAnswer = true
      })
      await asked
      await sleep(5)
      expect(hasAnswer).toBe(false)
      letComplete()
      const response = await answered
      expect(response.headers.get('content-encoding')).toBe('gzip')
      expect(response.headers.get('webhook-inbox-status')).toBe('completed')
      expect(await response.text()).toBe(long)
      const direct = await app.request(path, signed(undefined, { 'accept-encoding': 'gzip' }))
      expect(gunzipSync(await direct.arrayBuffer()).toString()).toBe(long)
    }
  })

  it('on one connection, for one request after the other', async () => {
    const { store, asked, letComplete } = gatedStore()
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store }), (c) => c.text(c.get('webhook').id))
    const { port } = await listen(app)
    const connection = connect(port)
    const [first, second] = [signed(), signed()]
    connection.send(Buffer.concat([wire(path, first), wire(path, second)]))
    await asked
    await sleep(5)
    expect(connection.received()).toBe('')
    letComplete()
    const text = await connection.until(second.headers['x-github-delivery'] ?? '')
    expect(text.indexOf(first.headers['x-github-delivery'] ?? '?')).toBeGreaterThan(0)
  })

  it('an error is stored before it is told', async () => {
    const store = memoryStore()
    const failing = gate()
    const asked = gate()
    const gated = withOperations(store, {
      async fail(...call) {
        asked.open()
        await failing.opened
        return store.fail(...call)
      },
    })
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store: gated }), (c) => c.text('busy', 500))
    const { port } = await listen(app)
    const connection = connect(port)
    connection.send(wire(path, signed()))
    await asked.opened
    await sleep(5)
    expect(connection.received()).toBe('')
    failing.open()
    expect(await connection.until('busy')).toContain('HTTP/1.1 500 ')
  })
})

describe('a body that is read before it is sent', () => {
  it('that breaks is a failure', async () => {
    const stream = manualBody()
    const { app, state } = guarded(() => new Response(stream.body))
    const answered = app.request(path, signed())
    stream.write('half of ')
    stream.end(new Error('database down'))
    const response = await answered
    expect([response.status, await state()]).toEqual([503, ['failed']])
    expect(await response.json()).toMatchObject({ code: 'handler_failed' })
  })

  it('that breaks for good is dead', async () => {
    const stream = manualBody()
    const { app, state } = guarded(() => new Response(stream.body))
    stream.end(new PermanentError('no such repository'))
    expect([(await app.request(path, signed())).status, await state()]).toEqual([422, ['dead']])
  })

  it('that breaks under an error status is a failure too', async () => {
    const stream = manualBody()
    const { app, state } = guarded(() => new Response(stream.body, { status: 400 }))
    stream.end(new Error('database down'))
    expect([(await app.request(path, signed())).status, await state()]).toEqual([503, ['failed']])
  })

  it('that holds neither bytes nor text is a failure', async () => {
    const { app, state } = guarded(() => new Response(objectChunks()))
    expect([(await app.request(path, signed())).status, await state()]).toEqual([503, ['failed']])
  })

  it('that never ends is answered after maxRunMs, and cancelled', async () => {
    const stream = manualBody()
    const { app, state } = guarded(() => new Response(stream.body), { maxRunMs: 20 })
    const response = await app.request(path, signed())
    expect(await response.json()).toMatchObject({ code: 'run_timeout' })
    expect(await state()).toEqual(['failed'])
    await stream.cancelled.opened
  })

  it('of exactly the limit is held', async () => {
    const { app, types } = guarded((c) => c.text('12345678'), { maxHeldResponseBytes: 8 })
    const response = await app.request(path, signed())
    expect(response.headers.get('webhook-inbox-status')).toBe('completed')
    expect(await response.text()).toBe('12345678')
    expect(types()).not.toContain('response_unheld')
  })
})

describe('a body too large to hold', () => {
  it('flows, but for its last chunk', async () => {
    const stream = manualBody()
    const { app, types, state } = guarded(() => new Response(stream.body), {
      maxHeldResponseBytes: 8,
    })
    const { port } = await listen(app)
    const connection = connect(port)
    connection.send(wire(path, signed()))
    stream.write('one,')
    stream.write('two,three,')
    expect(await connection.until('one,')).toContain('webhook-inbox-status: processing')
    stream.write('four,')
    await connection.until('two,three,')
    expect(types()).toContain('response_unheld')
    expect(await state()).toEqual(['processing'])
    expect(connection.received()).not.toContain('four,')
    stream.end()
    await connection.until('four,')
    expect(await state()).toEqual(['completed'])
    await connection.until('\r\n0\r\n\r\n')
  })

  it('that one chunk fills waits for the settlement', async () => {
    const { store, asked, letComplete } = gatedStore()
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store, maxHeldResponseBytes: 8 }), (c) =>
      c.text('more than eight'),
    )
    const { port } = await listen(app)
    const connection = connect(port)
    connection.send(wire(path, signed()))
    await asked
    await sleep(5)
    expect(connection.received()).not.toContain('more than eight')
    letComplete()
    await connection.until('more than eight')
  })

  it('that breaks is a failure, and the sender sees it break', async () => {
    const stream = manualBody()
    const { app, state } = guarded(() => new Response(stream.body), { maxHeldResponseBytes: 8 })
    const response = app.request(path, signed())
    stream.write('more than eight')
    const body = (await response).text()
    stream.end(new Error('database down'))
    await expect(body).rejects.toThrow()
    expect(await state()).toEqual(['failed'])
  })

  it('breaks off when the delivery cannot be completed', async () => {
    const store = withOperations(memoryStore(), { complete: async () => 'lost' })
    const app = new Hono()
    app.post(path, githubWebhook({ secret, store, maxHeldResponseBytes: 8 }), (c) =>
      c.text('more than eight'),
    )
    const response = await app.request(path, signed())
    await expect(response.text()).rejects.toThrow('not processed')
  })

  it('is read to its end when the sender hangs up', async () => {
    const stream = manualBody()
    const { app, heard, state } = guarded(() => new Response(stream.body), {
      maxHeldResponseBytes: 8,
    })
    const { port } = await listen(app)
    const connection = connect(port)
    connection.send(wire(path, signed()))
    stream.write('more than eight,')
    stream.write('and more,')
    await connection.until('more than eight,')
    connection.destroy()
    await connection.closed
    for (let chunk = 0; chunk < 100; chunk += 1) stream.write('x'.repeat(1000))
    stream.end()
    await heard('completed')
    expect(await state()).toEqual(['completed'])
  })

  it('that never ends breaks off after maxRunMs, and is cancelled', async () => {
    const stream = manualBody()
    const { app, state } = guarded(() => new Response(stream.body), {
      maxHeldResponseBytes: 8,
      maxRunMs: 50,
    })
    stream.write('more than eight')
    const response = await app.request(path, signed())
    await expect(response.text()).rejects.toThrow()
    expect(await state()).toEqual(['failed'])
    await stream.cancelled.opened
  })

  it('keeps a Worker alive until it is settled', async () => {
    const stream = manualBody()
    const { app, state } = guarded(() => new Response(stream.body), { maxHeldResponseBytes: 8 })
    const kept: Promise<unknown>[] = []
    const executionCtx = {
      waitUntil: (work: Promise<unknown>) => void kept.push(work),
      passThroughOnException() {},
      props: {},
    }
    stream.write('more than eight')
    const response = await app.request(path, signed(), {}, executionCtx)
    const text = response.text()
    stream.end()
    await Promise.all(kept)
    expect(kept.length).toBeGreaterThan(0)
    expect([await text, await state()]).toEqual(['more than eight', ['completed']])
  })
})

describe('an answer that the handler has sent by itself', () => {
  type Sender = (outgoing: ServerResponse) => void
  const directly = async (send: Sender) => {
    const answered = guarded((c) => {
      send(c.env.outgoing)
      return RESPONSE_ALREADY_SENT
    })
    const { url } = await listen(answered.app)
    const answer = fetch(`${url}${path}`, signed()).then((response) => response.text())
    return { ...answered, answer }
  }

  it.each([
    [200, 'completed'],
    [500, 'failed'],
  ])('settles by its own status %i, and nothing is sent twice', async (status, state) => {
    const sent = await directly((outgoing) => outgoing.writeHead(status).end('by hand'))
    expect(await sent.answer).toBe('by hand')
    await sent.heard(status === 200 ? 'completed' : 'failed')
    expect(await sent.state()).toEqual([state])
    expect(sent.types()).toContain('response_unheld')
  })

  it('is waited for', async () => {
    const more = gate()
    const sent = await directly((outgoing) => {
      outgoing.write('by ')
      more.opened.then(() => outgoing.end('hand'))
    })
    await sent.heard('response_unheld')
    expect(await sent.state()).toEqual(['processing'])
    more.open()
    expect(await sent.answer).toBe('by hand')
    await sent.heard('completed')
  })

  it('that breaks off is a failure', async () => {
    const sent = await directly((outgoing) => {
      outgoing.write('by ')
      outgoing.destroy()
    })
    await expect(sent.answer).rejects.toThrow()
    await sent.heard('failed')
  })
})

describe('a sender that hangs up', () => {
  it('changes nothing: the handler decides', async () => {
    const started = gate()
    const work = gate()
    const { app, heard, state } = guarded(async (c) => {
      started.open()
      await work.opened
      return c.text('ran')
    })
    const { port } = await listen(app)
    const connection = connect(port)
    connection.send(wire(path, signed()))
    await started.opened
    connection.destroy()
    await connection.closed
    work.open()
    await heard('completed')
    expect(await state()).toEqual(['completed'])
  })
})

function textChunks(...chunks: string[]): ReadableStream {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
}

function objectChunks(): ReadableStream {
  return new ReadableStream({
    start(controller) {
      controller.enqueue({ not: 'bytes' })
      controller.close()
    },
  })
}
