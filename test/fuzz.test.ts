import { createHmac } from 'node:crypto'
import { createReceiver, memoryStore, type Store } from '@webhook-inbox/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

const secret = "It's a Secret to Everybody"
const body = new TextEncoder().encode('{"action":"opened","title":"café ☕"}')
const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
const names = [
  'x-hub-signature-256',
  'x-github-event',
  'x-github-delivery',
  'x-github-hook-id',
  'content-type',
  'content-length',
  'content-encoding',
]

const headerValue = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 80 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 80 }) },
  fc.constantFrom(
    '',
    ' ',
    '\t',
    '__proto__',
    'constructor',
    '0',
    '-1',
    '1e9',
    'NaN',
    'null',
    'sha256=',
    'sha1=',
    'identity',
    'gzip',
    signature.toUpperCase(),
    ` ${signature}`,
    `${signature} `,
    `${signature},${signature}`,
    signature.slice(0, -1),
    `${signature}0`,
    signature.replace('sha256', 'SHA256'),
    signature.replace(/.$/, 'g'),
    'x'.repeat(1_000_000),
  ),
)
const headerSet = fc.dictionary(
  fc.oneof(
    fc.constantFrom(
      ...names,
      ...names.map((name) => name.toUpperCase()),
      '__proto__',
      'constructor',
      'toString',
    ),
    fc.string({ maxLength: 30 }),
  ),
  fc.oneof(headerValue, fc.array(headerValue, { maxLength: 3 })),
  { maxKeys: 10, noNullPrototype: false },
)

// Every method counts: before verification none may be touched.
function watched(): { store: Store; calls: () => number } {
  const inner = memoryStore()
  let count = 0
  const store = new Proxy(inner, {
    get(target, property, receiver) {
      const value: unknown = Reflect.get(target, property, receiver)
      if (typeof value !== 'function') return value
      return (...given: unknown[]) => {
        count += 1
        return Reflect.apply(value, target, given)
      }
    },
  })
  return { store, calls: () => count }
}

describe('any headers', () => {
  it('never crash the receiver; nothing unsigned reaches the store or the handler', async () => {
    const { store, calls } = watched()
    let runs = 0
    const receiver = createReceiver({
      provider: 'github',
      secret,
      store,
      handler: () => void runs++,
    })
    await fc.assert(
      fc.asyncProperty(headerSet, async (headers) => {
        const receipt = await receiver.receive(
          { method: 'POST', url: '/', headers, body },
          undefined,
        )
        if (receipt.status === 'claimed')
          throw new Error('a receiver with a handler does not hand out claims')
        const stated = Object.entries(headers).filter(
          ([name]) => name.toLowerCase() === 'x-hub-signature-256',
        )
        const isSigned = stated.length === 1 && String(stated[0]?.[1]) === signature
        if (isSigned) return
        expect([400, 401, 413, 415]).toContain(receipt.answer.status)
      }),
      { numRuns: 3000 },
    )
    expect(runs).toBe(0)
    expect(calls()).toBe(0)
  })

  it('signed right, with any other header: an answer, and no crash', async () => {
    const receiver = createReceiver({
      provider: 'github',
      secret,
      store: memoryStore(),
      handler: () => {},
    })
    await fc.assert(
      fc.asyncProperty(headerSet, async (headers) => {
        const request = {
          'x-github-event': 'push',
          'x-github-delivery': '1',
          ...headers,
          'x-hub-signature-256': signature,
        }
        const receipt = await receiver.receive(
          { method: 'POST', url: '/', headers: request, body },
          undefined,
        )
        if (receipt.status === 'claimed')
          throw new Error('a receiver with a handler does not hand out claims')
        expect([200, 202, 400, 401, 413, 415]).toContain(receipt.answer.status)
        expect(receipt.answer.headers['webhook-inbox-status']).toMatch(/^[a-z]+$/)
      }),
      { numRuns: 1500 },
    )
  })
})

describe('any signed body', () => {
  const odd = [
    '',
    'null',
    'true',
    '0',
    '-1.5e300',
    '"text"',
    '[]',
    '[[[',
    '{"__proto__":{"polluted":true}}',
    '{"action":{}}',
    '{"action":null}',
    '{"action":"\\u0000"}',
    '﻿{"action":"opened"}',
    '{"action":"a b"}',
    '1'.repeat(400),
    '['.repeat(100_000),
    'payload=',
    'payload=%',
    'payload=%ff',
    'other=1&payload=%7B%7D',
    '&&=&=',
  ]

  it.each(
    odd.flatMap((text) => [
      ['application/json', text],
      ['application/x-www-form-urlencoded', text],
      ['text/plain', text],
    ]),
  )('as %s: runs once (%#)', async (type, text) => {
    const bytes = new TextEncoder().encode(text)
    let seen: unknown = 'not run'
    const receiver = createReceiver({
      provider: 'github',
      secret,
      store: memoryStore(),
      handler: (webhook) => {
        seen = webhook.payload
      },
    })
    const headers = {
      'content-type': type,
      'x-github-event': '__proto__',
      'x-github-delivery': '1',
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`,
    }
    const receipt = await receiver.receive(
      { method: 'POST', url: '/', headers, body: bytes },
      undefined,
    )
    expect(receipt.status).toBe('completed')
    expect(seen).not.toBe('not run')
    expect(Reflect.get({}, 'polluted')).toBeUndefined()
  })

  it('any bytes at all', async () => {
    const receiver = createReceiver({
      provider: 'github',
      secret,
      store: memoryStore(),
      handler: () => {},
    })
    let count = 0
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom('application/json', 'application/x-www-form-urlencoded', ''),
        async (bytes, type) => {
          const headers = {
            'content-type': type,
            'x-github-event': 'push',
            'x-github-delivery': String(count++),
            'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`,
          }
          const receipt = await receiver.receive(
            { method: 'POST', url: '/', headers, body: bytes },
            undefined,
          )
          expect(receipt.status).toBe('completed')
        },
      ),
      { numRuns: 500 },
    )
  })

  it('no single changed byte is accepted', async () => {
    const { store, calls } = watched()
    const receiver = createReceiver({ provider: 'github', secret, store, handler: () => {} })
    const headers = {
      'x-github-event': 'push',
      'x-github-delivery': '1',
      'x-hub-signature-256': signature,
    }
    for (let index = 0; index < body.length; index++) {
      const changed = body.slice()
      changed[index] = (changed[index] ?? 0) ^ 1
      const receipt = await receiver.receive(
        { method: 'POST', url: '/', headers, body: changed },
        undefined,
      )
      expect(receipt).toMatchObject({ status: 'refused', code: 'signature_mismatch' })
    }
    expect(calls()).toBe(0)
  })
})
