import { runInNewContext } from 'node:vm'
import { createReceiver, memoryStore, signatureHeaders, verify } from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { secret, signed } from './support.ts'

const { headers, body } = signed('{"n":1}')
const shared = new Uint8Array(new SharedArrayBuffer(body.length))
shared.set(body)

// Typed as unknown: what JavaScript users can pass, the compiler refuses.
function verifyOf(request: unknown): Promise<unknown> {
  return Reflect.apply(verify, undefined, ['github', request])
}

describe('verify', () => {
  it.each([
    ['a Uint8Array', body],
    ['a Buffer', Buffer.from(body)],
    ['a part of a larger buffer', Buffer.from(`xx${Buffer.from(body)}`).subarray(2)],
    ['shared memory', shared],
    ['bytes of another realm', runInNewContext('Uint8Array.from(bytes)', { bytes: [...body] })],
  ])('takes %s as body', async (_, bytes) => {
    expect(await verifyOf({ headers, body: bytes, secret })).toMatchObject({
      valid: true,
      delivery: { payload: { n: 1 } },
    })
  })

  it.each([
    ['text', '{"n":1}'],
    ['an ArrayBuffer', new ArrayBuffer(7)],
    ['a DataView', new DataView(new ArrayBuffer(7))],
    ['wider numbers', new Uint16Array(4)],
    ['an object', { n: 1 }],
    ['a list of bytes', [1, 2]],
    ['null', null],
    ['nothing', undefined],
  ])('refuses %s as body, with the way out', async (_, wrong) => {
    await expect(verifyOf({ headers, body: wrong, secret })).rejects.toMatchObject({
      code: 'ERR_OPTION',
      message: expect.stringContaining('Uint8Array'),
    })
    const receiver = createReceiver({ provider: 'github', secret, store: memoryStore() })
    const request: unknown = { ...signed('{"n":1}'), body: wrong }
    await expect(Reflect.apply(receiver.receive, undefined, [request])).rejects.toMatchObject({
      code: 'ERR_OPTION',
    })
    await expect(
      Reflect.apply(signatureHeaders, undefined, ['github', { secret, body: wrong }]),
    ).rejects.toMatchObject({ code: 'ERR_OPTION' })
  })

  it.each([
    ['a Headers', new Headers(headers)],
    ['a Map', new Map(Object.entries(headers))],
    ['lists of values', Object.fromEntries(Object.entries(headers).map(([k, v]) => [k, [v]]))],
    ['no prototype', Object.assign(Object.create(null), headers)],
    ['capitals', Object.fromEntries(Object.entries(headers).map(([k, v]) => [k.toUpperCase(), v]))],
  ])('takes headers as %s', async (_, given) => {
    expect(await verifyOf({ headers: given, body, secret })).toMatchObject({ valid: true })
  })

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['text', 'x-github-event: push'],
    ['a flat list', Object.entries(headers).flat()],
  ])('refuses headers as %s', async (_, given) => {
    await expect(verifyOf({ headers: given, body, secret })).rejects.toMatchObject({
      code: 'ERR_OPTION',
      message: expect.stringContaining('"headers"'),
    })
  })

  it.each([undefined, null, 'request'])('refuses %s as request', async (request) => {
    await expect(verifyOf(request)).rejects.toMatchObject({ code: 'ERR_OPTION' })
  })
})
