import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { verify } from '@webhook-inbox/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { entryOf, requestOf, type Vector } from '../vector.ts'
import { type Runtime, runtimes, type Server } from './runtime.ts'

// GitHub's published example.
const secret = "It's a Secret to Everybody"
const body = 'Hello, World!'
const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'

const servers = new Map<Runtime, Server>()
beforeAll(async () => {
  await Promise.all(runtimes.map(async (runtime) => servers.set(runtime, await runtime.start())))
})
afterAll(() => Promise.all([...servers.values()].map((server) => server.stop())))

interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** On a connection of its own: workerd closes one whose request it has refused unread, without saying so. */
async function send(
  runtime: Runtime,
  path: string,
  { method = 'POST', headers, body: sent }: Call,
) {
  const length = sent === undefined ? {} : { 'content-length': Buffer.byteLength(sent) }
  const outgoing = request(`${servers.get(runtime)?.url}${path}`, {
    agent: false,
    method,
    headers: { ...length, ...headers },
  })
  outgoing.end(sent)
  const [response]: IncomingMessage[] = await once(outgoing, 'response')
  if (response === undefined) throw new Error('no response')
  return {
    status: response.statusCode,
    headers: Object.fromEntries(
      ['content-type', 'webhook-inbox-status', 'allow', 'retry-after'].map((name) => [
        name,
        response.headers[name]?.toString().toLowerCase(),
      ]),
    ),
    body: await text(response),
  }
}

function signed(content: string, headers: Readonly<Record<string, string>> = {}): Call {
  return {
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(content).digest('hex')}`,
      ...headers,
    },
    body: content,
  }
}

describe.each(runtimes)('on $name', (runtime) => {
  it('judges what other libraries have signed as Node does', async () => {
    const folder = join(import.meta.dirname, '../vectors')
    const vectors = readdirSync(folder).flatMap((file): readonly Vector[] =>
      JSON.parse(readFileSync(join(folder, file), 'utf8')),
    )
    const expected = await Promise.all(
      vectors.map(async (vector) => {
        const { valid } = await verify(entryOf(vector.provider), requestOf(vector))
        return valid
      }),
    )
    const sent = await send(runtime, '/vectors', { body: JSON.stringify(vectors) })
    expect(JSON.parse(sent.body)).toEqual(expected)
    expect(expected.filter(Boolean).length).toBeGreaterThan(50)
  })

  it.each(['hono', 'fetch'])('%s runs the published example once', async (adapter) => {
    const vector = signed(body, { 'x-hub-signature-256': signature, 'x-github-delivery': 'vector' })
    const forged = await send(runtime, `/${adapter}`, { ...vector, body: 'Hello, World?' })
    expect([forged.status, JSON.parse(forged.body).code]).toEqual([401, 'signature_mismatch'])
    const first = await send(runtime, `/${adapter}`, vector)
    expect([first.status, first.headers['webhook-inbox-status']]).toEqual([200, 'completed'])
    if (adapter === 'hono') {
      expect(JSON.parse(first.body)).toEqual({ ran: body, attempt: 1, again: [body, body, body] })
    }
    const copy = await send(runtime, `/${adapter}`, vector)
    expect([copy.status, copy.body]).toEqual([200, '{"status":"completed","deliveryId":"vector"}'])
    const runs = await send(runtime, '/runs', { method: 'GET' })
    expect(JSON.parse(runs.body)).toMatchObject({ [adapter]: 1 })
  })

  it('the core pulls in the web crypto build and no module of Node', async () => {
    const modules = await runtime.loadedModules()
    const core = modules.filter((id) => id.includes('/packages/core/src/'))
    expect(core.map((id) => id.slice(id.indexOf('/core/src/')))).toEqual(
      expect.arrayContaining(['/core/src/crypto/web.ts', '/core/src/receiver.ts']),
    )
    expect(core.filter((id) => id.endsWith('/crypto/node.ts'))).toEqual([])
    expect(modules.filter((id) => id.startsWith('node:'))).toEqual([])
  })
})

const corpus: Readonly<Record<string, readonly [path: string, call: Call]>> = {
  'a GET on a path mount': ['/path', { method: 'GET' }],
  'a PUT on a path mount': ['/path', { method: 'PUT', body: 'x' }],
  'a HEAD on a path mount': ['/path', { method: 'HEAD' }],
  'no signature': ['/path', { body: 'x' }],
  'a wrong signature': ['/path', signed('x', { 'x-hub-signature-256': 'sha256=00' })],
  'a content encoding': ['/path', signed('x', { 'content-encoding': 'gzip' })],
  'a body of the limit': ['/path', signed('x'.repeat(64), { 'x-github-delivery': 'limit' })],
  'a body over the limit': ['/path', signed('x'.repeat(65))],
  'an unusable delivery id': ['/path', signed('x', { 'x-github-delivery': 'a b' })],
  'an event that is __proto__': [
    '/hono',
    signed('{}', { 'x-github-event': '__proto__', 'x-github-delivery': 'proto' }),
  ],
  'a hook id that is not a number': ['/path', signed('x', { 'x-github-hook-id': 'x' })],
  'a ping': ['/path', signed('{}', { 'x-github-event': 'ping' })],
  'a form': [
    '/hono',
    signed(`payload=${encodeURIComponent('{"zen":"☕"}')}`, {
      'content-type': 'application/x-www-form-urlencoded',
      'x-github-delivery': 'form',
    }),
  ],
  'bytes of more than one': ['/hono', signed('"☕ 𝄞"', { 'x-github-delivery': 'unicode' })],
  'an empty body': ['/hono', signed('', { 'x-github-delivery': 'empty' })],
  'a path that is not there': ['/hono/else', signed('x')],
  'a route that is not there': ['/path', signed('x', { 'x-github-delivery': 'no-route' })],
  'an answer of plain text': ['/text', signed('{}', { 'x-github-delivery': 'text' })],
  'a streamed answer': ['/stream', signed('{}', { 'x-github-delivery': 'stream' })],
  'an answer too large to hold': ['/large', signed('{}', { 'x-github-delivery': 'large' })],
  'a handler that throws': ['/throws', signed('{}', { 'x-github-delivery': 'throws' })],
  'fetch: a GET': ['/fetch', { method: 'GET' }],
  'fetch: a body over the limit': ['/fetch', signed('x'.repeat(65))],
  'fetch: a run': ['/fetch', signed('{}', { 'x-github-delivery': 'run' })],
}

describe('the same request has the same answer everywhere', () => {
  it.each(Object.entries(corpus))('%s', async (_, [path, call]) => {
    const [first, ...others] = await Promise.all(
      runtimes.map((runtime) => send(runtime, path, call)),
    )
    for (const other of others) expect(other).toEqual(first)
  })
})
