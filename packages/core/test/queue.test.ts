import {
  createInbox,
  createReceiver,
  createWorker,
  memoryStore,
  storeUnavailable,
} from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { secret, signed, withOperations } from './support.ts'
import { createQueue, keyOf, queueOn } from './worker-support.ts'

describe('a queued endpoint', () => {
  it('answers copies by the state of the delivery', async () => {
    const { send, inner, inbox, clock } = createQueue()
    const answerOf = async (id: string) => {
      const receipt = await send(id)
      if (receipt.status === 'claimed') throw new Error('claimed')
      return [receipt.answer.status, receipt.answer.headers['webhook-inbox-status']]
    }
    expect(await answerOf('d')).toEqual([202, 'pending'])
    expect(await answerOf('d')).toEqual([202, 'pending'])
    const take = () => inner.take({ limit: 1, leaseMs: 1000, deadRetentionMs: 86_400_000 })
    const [first] = await take()
    if (first === undefined) throw new Error('not taken')
    expect(await answerOf('d')).toEqual([202, 'processing'])
    await inner.fail(first.hold, { code: 'x', retentionMs: 1000, retryInMs: 5000 })
    expect(await answerOf('d')).toEqual([202, 'pending'])
    clock.nowMs += 5000
    const [second] = await take()
    if (second === undefined) throw new Error('not taken')
    clock.nowMs += 1001
    expect(await answerOf('d')).toEqual([202, 'pending'])
    await inner.fail(second.hold, { code: 'x', retentionMs: 86_400_000, dead: true })
    expect(await answerOf('d')).toEqual([202, 'dead'])
    expect(await inbox.retry(keyOf('d'))).toBe('pending')
    await createWorker({ inbox, handler: () => {} }).drain()
    expect(await answerOf('d')).toEqual([200, 'completed'])
  })

  it('is 503 when the store does not keep it, and nothing runs', async () => {
    const { send, events } = createQueue({
      wrap: (store) =>
        withOperations(store, { claim: () => Promise.reject(storeUnavailable('down')) }),
    })
    const receipt = await send('d')
    expect(receipt).toMatchObject({ status: 'refused', code: 'store_unavailable' })
    expect(events.map(({ type }) => type)).toEqual(['verified', 'store_unavailable', 'refused'])
  })

  it('stores what cannot be put in a line without one, and says so', async () => {
    for (const orderKey of [
      () => {
        throw new TypeError('no repository')
      },
      () => '',
      () => 'x'.repeat(256),
      () => '\ud800',
      () => 5,
    ]) {
      const { send, stateOf, inbox, events, errors } = createQueue({
        // What a caller without types may do.
        endpoint: { orderKey: orderKey as () => string },
      })
      expect((await send('d')).status).toBe('pending')
      expect(errors).toHaveLength(1)
      expect(events).toContainEqual(
        expect.objectContaining({ type: 'warning', code: 'order_key_failed' }),
      )
      await createWorker({ inbox, handler: () => {} }).drain()
      expect(await stateOf('d')).toBe('completed')
    }
  })

  it('runs the deliveries of one key in the order of receipt', async () => {
    const { send, inbox } = createQueue({
      endpoint: { orderKey: ({ payload }) => String(Object(payload).repository) },
    })
    for (let index = 0; index < 12; index++)
      await send(`d-${index}`, { payload: { repository: index % 3 } })
    const ran: string[] = []
    const running = new Set<number>()
    await createWorker({
      inbox,
      async handler({ id }) {
        const line = Number(id.slice(2)) % 3
        expect(running.has(line)).toBe(false)
        running.add(line)
        await new Promise(setImmediate)
        ran.push(id)
        running.delete(line)
      },
    }).drain()
    for (const line of [0, 1, 2]) {
      const own = ran.filter((id) => Number(id.slice(2)) % 3 === line)
      expect(own).toEqual([0, 3, 6, 9].map((index) => `d-${index + line}`))
    }
  })

  it.each([
    [{ queue: true, handler: () => {} }, /Hand the handler to createWorker/],
    [{ orderKey: () => 'x' }, /"orderKey" needs queue: true/],
    [{ queue: true, settleBy: () => undefined }, /"settleBy" has no meaning with queue: true/],
    [{ queue: true, inFlight: 'retry' }, /"inFlight" has no meaning with queue: true/],
    [{ queue: true, deadLetter: { keepBody: true } }, /"deadLetter" has no meaning/],
    [{ queue: 1 }, /"queue" must be true or false/],
    [{ queue: true, orderKey: 'id' }, /"orderKey" must be a function/],
  ])('refuses %o', (options, message) => {
    const all = { provider: 'github', secret, store: memoryStore(), ...options }
    expect(() => Reflect.apply(createReceiver, undefined, [all])).toThrow(message)
  })
})

describe('a route that moves between inline and queued', () => {
  it('loses nothing either way', async () => {
    const store = memoryStore()
    const inbox = createInbox({ store, onError: () => {} })
    const queued = queueOn(inbox)
    const inline = createReceiver({ provider: 'github', secret, endpoint: '1', inbox })
    const receive = (id: string) =>
      inline.receive(signed('{}', { 'x-github-delivery': id }), undefined)

    // Stored, then an inline copy comes before a worker: it runs there, and no worker takes it meanwhile.
    await queued.send('a')
    const claimed = await receive('a')
    if (claimed.status !== 'claimed') throw new Error(claimed.status)
    const runs: string[] = []
    const worker = createWorker({ inbox, handler: ({ id }) => void runs.push(id) })
    await worker.drain()
    expect(runs).toEqual([])
    await claimed.settle({ status: 500 })
    // It has its bytes: a worker finishes it.
    await worker.drain()
    expect(runs).toEqual(['a'])

    // Running inline, then a queued copy brings the bytes: should the inline run fail, a worker finishes it.
    const running = await receive('b')
    if (running.status !== 'claimed') throw new Error(running.status)
    expect((await queued.send('b')).status).toBe('processing')
    await worker.drain()
    expect(runs).toEqual(['a'])
    await running.settle({ status: 500 })
    await worker.drain()
    expect(runs).toEqual(['a', 'b'])
    expect((await receive('b')).status).toBe('completed')

    // Failed inline without bytes: no worker touches it until somebody brings them.
    const failed = await receive('c')
    if (failed.status !== 'claimed') throw new Error(failed.status)
    await failed.settle({ status: 500 })
    await worker.drain()
    expect(runs).toEqual(['a', 'b'])
    await queued.send('c')
    await worker.drain()
    expect(runs).toEqual(['a', 'b', 'c'])
  })
})

describe('inbox.latest', () => {
  it('takes a date or a number, and refuses what is none', async () => {
    const inbox = createInbox({ store: memoryStore() })
    expect(await inbox.latest('order:1', new Date(2000))).toBe(true)
    expect(await inbox.latest('order:1', 1999.9)).toBe(false)
    expect(await inbox.latest('order:1', 2000)).toBe(true)
    for (const time of [new Date('no date'), Number.NaN, 1e17, 'yesterday'])
      await expect(Reflect.apply(inbox.latest, inbox, ['x', time])).rejects.toThrow(/"occurredAt"/)
    for (const key of ['', 'x'.repeat(256), '\udc00', 5])
      await expect(Reflect.apply(inbox.latest, inbox, [key, 1])).rejects.toThrow(/"entityKey"/)
    await expect(inbox.latest('order:1', 1, {})).rejects.toMatchObject({ code: 'ERR_TRANSACTION' })
  })
})
