import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { bytesOf, delivery, openWire } from '../../packages/node/test/support.ts'
import { nodeRuntimes, type Server } from './runtime.ts'

/** Path, status, body and state of every answer. */
const answers: readonly (readonly [name: string, status: number, text: string, state: string])[] = [
  ['end', 200, 'hello', 'completed'],
  ['pieces', 201, 'hello', 'completed'],
  ['flushed', 200, 'hello', 'completed'],
  ['piped', 200, 'hello', 'completed'],
  ['twice', 200, 'hello', 'completed'],
  ['refused', 500, 'hello', 'failed'],
]
const adapters = ['node', 'express', 'compressed', 'compressing', 'koa']

describe.each(nodeRuntimes)('on $name', (runtime) => {
  let server: Server
  beforeAll(async () => {
    server = await runtime.start('node-http.ts')
  })
  afterAll(() => server.stop())

  const ask = async (what: string): Promise<string> =>
    (await fetch(`${server.url}/${what}`, { headers: { connection: 'close' } })).text()

  /** Sends one delivery, and lets its settlement go once nothing has arrived before it. */
  async function sent(path: string, request = delivery('{"zen":"☕"}')) {
    await ask('hold')
    const wire = await openWire(Number(new URL(server.url).port))
    await wire.send(bytesOf(request, `/${path}`))
    await ask('settling')
    const early = wire.received().length
    await ask('open')
    const response = await wire.response().catch(() => undefined)
    wire.destroy()
    return { early, response, state: await ask(`state/${request.id}`) }
  }

  describe.each(adapters)('%s', (adapter) => {
    it.each(answers)('holds "%s" until it is settled', async (name, status, text, state) => {
      const { early, response, state: settled } = await sent(`${adapter}/${name}`)
      expect([early, response?.status, response?.text, settled]).toEqual([0, status, text, state])
      expect(response?.header('webhook-inbox-status')).toBe(state)
    })

    it('lets all but the end of a large answer go', async () => {
      const request = delivery()
      await ask('hold')
      const wire = await openWire(Number(new URL(server.url).port))
      const begun = once(wire.socket, 'data')
      await wire.send(bytesOf(request, `/${adapter}/large`))
      await begun
      await ask('open')
      expect((await wire.response()).body.length).toBe(200_003)
      wire.destroy()
      expect(await ask(`state/${request.id}`)).toBe('completed')
    })

    it('sends nothing when the handler destroys its response', async () => {
      const { response, state } = await sent(`${adapter}/destroyed`)
      expect([response, state]).toEqual([undefined, 'failed'])
    })
  })

  it.each(['express', 'koa'])('%s gives the payload, and answers a copy', async (adapter) => {
    const request = delivery('{"zen":"☕"}')
    expect((await sent(`${adapter}/json`, request)).response?.text).toBe('{"zen":"☕"}')
    const copy = await fetch(`${server.url}/${adapter}/json`, {
      method: 'POST',
      headers: Object.entries(request.headers).filter(([name]) => name !== 'host'),
      body: new Uint8Array(request.body),
    })
    expect(await copy.json()).toEqual({ status: 'completed', deliveryId: request.id })
  })
})
