import { redisStore } from '@webhook-inbox/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OwnRedisServer, startRedis } from '../../../test/services/redis.ts'
import { claimOne, entryOf, newPrefix, openRedis, sleep } from './support.ts'

let server: OwnRedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server?.stop())

const payload = { body: new Uint8Array([1]), headers: {} }
const queued = (order: string) => ({ mode: 'queued', payload, order }) as const
const some = { limit: 10, leaseMs: 60_000, deadRetentionMs: 1000 } as const

function openTwo() {
  const clients = [openRedis(server.url), openRedis(server.url)] as const
  const prefix = newPrefix()
  const open = (client: (typeof clients)[number]) =>
    redisStore({ client, prefix, onWarning: () => {} })
  const [here, there] = [open(clients[0]), open(clients[1])]
  return {
    prefix,
    client: clients[0],
    here,
    there,
    async close() {
      await here.close()
      await there.close()
      for (const client of clients) client.disconnect()
    },
  }
}

describe('a watch', () => {
  it('hears of what another process stores, and leaves no connection behind', async () => {
    const { client, here, there, close } = openTwo()
    let ring = (): void => {}
    const watch = await here.watch?.(() => ring())
    expect(watch?.reach).toBe('all')
    const heard = new Promise<void>((resolve) => {
      ring = resolve
    })
    await claimOne(there, entryOf('d', { mode: 'queued', payload }))
    await heard
    const subscribed = async () => {
      const list = await client.call('CLIENT', 'LIST', 'TYPE', 'PUBSUB')
      return String(list)
        .split('\n')
        .filter((line) => line !== '').length
    }
    expect(await subscribed()).toBe(1)
    await watch?.close()
    await expect.poll(subscribed).toBe(0)
    await close()
  })
})

describe('a line', () => {
  it('keeps the order of receipt also for what comes together', async () => {
    const { here, close } = openTwo()
    const ids = Array.from({ length: 200 }, (_, index) => `${(index * 7919) % 1000}-${index}`)
    await Promise.all(ids.map((id) => claimOne(here, entryOf(id, queued('line')))))
    const ran: string[] = []
    for (;;) {
      const [taken] = await here.take(some)
      if (taken === undefined) break
      ran.push(taken.hold.key.deliveryId)
      await here.complete(taken.hold, { retentionMs: 1000 })
    }
    expect(ran).toEqual(ids)
    await close()
  })

  it('is never left without a taker, whatever comes together', async () => {
    const { here, there, close } = openTwo()
    const lines = 5
    let stored = 0
    const store = async (on: typeof here, name: string) => {
      for (let index = 0; index < 40; index++) {
        await claimOne(on, entryOf(`${name}-${index}`, queued(`line ${index % lines}`)))
        stored += 1
      }
    }
    const held = new Map<string, string>()
    let ran = 0
    const work = async (on: typeof here) => {
      for (let idle = 0; ran < 160 && idle < 500; idle++) {
        const taken = await on.take({ ...some, limit: 3 })
        for (const { hold } of taken) {
          const line = `line ${Number(hold.key.deliveryId.split('-')[1]) % lines}`
          expect(held.get(line)).toBeUndefined()
          held.set(line, hold.key.deliveryId)
          await sleep(1)
          held.delete(line)
          expect(await on.complete(hold, { retentionMs: 1000 })).toBe('ok')
          ran += 1
          idle = 0
        }
        if (taken.length === 0) await sleep(5)
      }
    }
    await Promise.all([
      ...['a', 'c'].map((name) => store(here, name)),
      ...['b', 'd'].map((name) => store(there, name)),
      work(here),
      work(there),
      work(there),
    ])
    expect([stored, ran]).toEqual([160, 160])
    await close()
  })

  it('gets what was stored by a process that died before it was in its place', async () => {
    const { client, prefix, here, close } = openTwo()
    await claimOne(here, entryOf('first', queued('line')))
    // All that tells of the line, as if the process had died between the two steps.
    const told = await client.keys(`{${prefix}:*}:line*`)
    expect(told.length).toBeGreaterThan(0)
    await client.del(...told)
    const id = (await client.keys(`{${prefix}:*}:*`)).find((name) => /:[\w-]{22}$/.test(name))
    if (id === undefined) throw new Error('The record is not there.')
    // Its place was not noted either.
    const record = (await client.hgetBuffer(id, 'record')) ?? Buffer.of()
    const fields = record.toString('utf8', 14).split('\x1f')
    expect(Number(fields[7])).toBeGreaterThan(0)
    fields[7] = ''
    const without = Buffer.concat([record.subarray(0, 14), Buffer.from(fields.join('\x1f'))])
    await client.hset(id, 'record', without)
    await client.zadd(`${id.slice(0, -22)}index`, 9 * 2 ** 42, id.slice(-22))
    await claimOne(here, entryOf('second', queued('other')))
    const ids: string[] = []
    while (ids.length < 2) {
      for (const { hold } of await here.take(some)) ids.push(hold.key.deliveryId)
    }
    expect(ids.toSorted()).toEqual(['first', 'second'])
    await close()
  })

  it('is taken by another when the lease of its head has ended', async () => {
    const { here, there, close } = openTwo()
    await claimOne(here, entryOf('first', queued('line')))
    const [head] = await here.take({ ...some, leaseMs: 300 })
    expect(head?.hold.key.deliveryId).toBe('first')
    // Its lease ends: nothing else tells.
    await expect
      .poll(async () => (await there.take(some)).map(({ attempt }) => attempt), { timeout: 5000 })
      .toEqual([2])
    await close()
  })
})
