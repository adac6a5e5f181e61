/** What is told of an entry when it is made, and what a faulty one does. */
import { createReceiver, defineProvider, memoryStore, verify } from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { acme, bytes, hmac } from './support.ts'

describe('an entry of one’s own', () => {
  it('is frozen, checked, and works', async () => {
    const own = defineProvider({
      name: 'acme',
      signature: {
        scheme: 'hmac',
        hash: 'SHA-512',
        encoding: 'base64url',
        header: 'acme',
        content: '{method} {path} {sha256:hex} {header:acme-id}',
      },
      deliveryId: { header: 'acme-id' },
      event: { value: 'event' },
      retriesByItself: true,
      retentionMs: 1,
    })
    expect(Object.isFrozen(own.signature)).toBe(true)
    const url = 'https://hooks.example.test/in?a=1'
    const { headers, body } = await signRequest(own, {
      secret: 's',
      event: 'event',
      deliveryId: '7',
      url,
    })
    const verified = await verify(own, { headers, body: bytes(body), url, secret: 's' })
    expect(verified).toMatchObject({ valid: true, delivery: { id: '7', event: 'event' } })
  })

  it.each([
    [{ content: '{nope}' }, /"signature.content" must be a template/],
    [{ content: 'constant' }, /"signature.content"/],
    [{ encoding: 'base32' }, /"signature.encoding" must be 'hex', 'base64' or 'base64url'/],
    [{ header: undefined }, /"signature\.?" must be with a "header"/],
    [{ timestamp: { header: 'X-Time', unit: 's' } }, /"signature.timestamp.header" must be/],
    [{ timestamp: { header: 'x-time', unit: 'm' } }, /"signature.timestamp.unit" must be/],
    [{ scheme: 'digest', content: '{body}' }, /without it anybody can make the hash/],
  ] as const)('%o is told', (wrong, message) => {
    const signature = { ...acme.signature, ...wrong }
    const make = () => Reflect.apply(defineProvider, undefined, [{ ...acme, signature }])
    expect(make).toThrow(message)
    expect(make).toThrow(expect.objectContaining({ code: 'ERR_OPTION' }))
  })
})

describe('a provider entry with a fault', () => {
  const byFields = { deliveryId: { body: 'id' }, event: { body: 'type' } }

  function define(change: object): () => unknown {
    // As unknown: what JavaScript users can write, the compiler refuses.
    return () => Reflect.apply(defineProvider, undefined, [{ ...acme, ...byFields, ...change }])
  }
  const signature = (change: object) => ({ signature: { ...acme.signature, ...change } })
  const handshake = (change: object) => ({
    handshakes: [{ name: 'x', when: [{ body: 'type', equals: 'ping' }], answer: {}, ...change }],
  })
  const timed = { content: '{timestamp}.{body}' }
  const jwt = { scheme: 'jwt', header: 'a', algorithms: ['HS256'], verify: async () => 'valid' }

  it.each([
    [
      'a scheme with a misspelt field',
      signature({ prefx: 'v1=' }),
      /"signature.prefx" must be left out.*did you mean "prefix"\?$/,
    ],
    ['a condition that is none', signature({ when: [null] }), /"signature.when"/],
    ['a condition that is a text', signature({ when: ['x-foo'] }), /"signature.when"/],
    [
      'a scheme chosen by the body',
      signature({ when: [{ body: 'a' }] }),
      /nothing of the body is proved/,
    ],
    [
      'a time with a misspelt field',
      signature({ ...timed, timestamp: { header: 't', unit: 's', pastMS: 1 } }),
      /timestamp.pastMS" must be left out/,
    ],
    ['a time that is a text', signature({ timestamp: 't' }), /"signature.timestamp"/],
    [
      'a time without a unit',
      signature({ ...timed, timestamp: { header: 't' } }),
      /timestamp.unit/,
    ],
    ['a time from nowhere', signature({ timestamp: { unit: 's' } }), /"header" or the "body"/],
    ['a template without its time', signature(timed), /the content has a '{timestamp}'/],
    ['a secret format that is a text', signature({ secret: 'hex' }), /"signature.secret"/],
    [
      'a handshake with a misspelt condition',
      handshake({ when: [{ body: 'type', equal: 'ping' }] }),
      /"handshakes.0.when"/,
    ],
    [
      'a handshake with a misspelt field',
      handshake({ singed: false }),
      /"handshakes.0.singed" must be left out/,
    ],
    [
      'an answer with a misspelt field',
      handshake({ answer: { txt: { value: 'ok' } } }),
      /answer.txt" must be left out/,
    ],
    ['an answer that is a text', handshake({ answer: { text: 'ok' } }), /answer.text/],
    ['an answer with a plain value', handshake({ answer: { json: { a: 1 } } }), /answer.json/],
    ['an answer with a strange status', handshake({ answer: { status: '200' } }), /answer.status/],
    [
      'an answer that signs for strangers',
      handshake({
        method: 'GET',
        when: [{ query: 'crc' }],
        answer: { text: { hmac: { query: 'crc' } } },
      }),
      /could have any body signed/,
    ],
    [
      'an answer that signs for strangers in JSON',
      handshake({ signed: false, answer: { json: { token: { hmac: { body: 'a' } } } } }),
      /could have any body signed/,
    ],
    ['an event of blanks', { event: { value: ' ' } }, /"event"/],
    ['a success that is no text', { success: { status: 200, body: {} } }, /"success.body"/],
    [
      'a success with a misspelt condition',
      { success: { status: 200, when: [{ header: 'x', equal: 'y' }] } },
      /"success.when"/,
    ],
    ['a source with two places', { deliveryId: { header: 'a', body: 'b' } }, /"deliveryId"/],
    [
      'items with a misspelt field',
      { items: { list: '', id: { body: 'a' }, event: { value: 'x' }, eech: 'b' } },
      /"items.eech" must be left out/,
    ],
    [
      'tokens of shared and of public keys',
      { signature: { ...jwt, algorithms: ['RS256', 'HS256'] } },
      /never both/,
    ],
    ['tokens of no algorithm', { signature: { ...jwt, algorithms: [] } }, /"signature.algorithms"/],
    ['unsigned tokens', { signature: { ...jwt, algorithms: ['none'] } }, /"signature.algorithms"/],
    [
      'a token in several headers',
      { signature: { ...jwt, header: ['a', 'b'] } },
      /"signature.header"/,
    ],
  ])('%s is told when it is made', (_name, change, message) => {
    expect(define({})).not.toThrow()
    expect(define(change)).toThrow(message)
  })

  it.each([
    [
      'an id',
      {
        deliveryId: () => {
          throw new TypeError('no id')
        },
      },
    ],
    [
      'an event',
      {
        event: () => {
          throw new TypeError('no event')
        },
      },
    ],
    ['items', { items: () => [1, null] }],
    ['signed content', signature({ content: () => 'a text' })],
  ])('a function for %s that fails is a 503, and is told', async (_name, change) => {
    const entry: unknown = define(change)()
    const errors: unknown[] = []
    const options: unknown = {
      provider: entry,
      secret: 's',
      store: memoryStore(),
      handler: () => {},
      onError: (error: unknown) => void errors.push(error),
    }
    const receiver = Reflect.apply(createReceiver, undefined, [options])
    const body = '{"id":"1","type":"paid"}'
    const receipt = await receiver.receive(
      {
        method: 'POST',
        url: '/',
        headers: { 'acme-signature': hmac('s', body) },
        body: bytes(body),
      },
      undefined,
    )
    expect(receipt).toMatchObject({ code: 'internal_error', answer: { status: 503 } })
    expect(errors).toEqual([expect.any(TypeError)])
  })

  it('a number that a function gives is a text', async () => {
    const entry: unknown = define({ deliveryId: () => 7, event: () => true })()
    const options: unknown = {
      headers: { 'acme-signature': hmac('s', '{}') },
      body: bytes('{}'),
      secret: 's',
    }
    expect(await Reflect.apply(verify, undefined, [entry, options])).toMatchObject({
      delivery: { id: '7', event: 'true' },
    })
  })
})
