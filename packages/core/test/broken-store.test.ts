import {
  type ClaimedDelivery,
  createReceiver,
  type Handler,
  memoryStore,
  type Store,
} from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { gate, recorder, secret, signed, withOperations } from './support.ts'

/** A store in plain JavaScript can answer anything: what the compiler would refuse. */
function answering(operation: keyof Store, answer: unknown): Store {
  const store = memoryStore()
  Reflect.set(store, operation, async () => answer)
  return store
}

function receiverOf(store: Store, handler: Handler<undefined>, options = {}) {
  return createReceiver<undefined>({ provider: 'github', secret, store, handler, ...options })
}

const noFence = { status: 'claimed', attempt: 1, leaseMs: 1, fingerprintMatches: true }

describe('an answer that is none', () => {
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['no results', []],
    ['null as result', [null]],
    ['a result without status', [{}]],
    ['an unknown status', [{ status: 'ok', fingerprintMatches: true }]],
    ['text', 'claimed'],
    ['a claim without fence', [noFence]],
    ['a claim with a broken fence', [{ ...noFence, fence: Number.NaN }]],
    ['a lease without time', [{ status: 'processing', fingerprintMatches: true }]],
    ['a wait without time', [{ status: 'waiting', fingerprintMatches: true }]],
  ])('to a claim (%s) is a 503 and never a 2xx', async (_, answer) => {
    let runs = 0
    const errors: unknown[] = []
    const receiver = receiverOf(answering('claim', answer), () => (runs += 1), {
      onError: (error: unknown) => errors.push(error),
    })
    expect(await receiver.receive(signed('{}'), undefined)).toMatchObject({
      status: 'refused',
      code: 'store_unavailable',
      answer: { status: 503 },
    })
    expect(runs).toBe(0)
    expect(errors).toMatchObject([{ code: 'ERR_STORE_UNAVAILABLE' }])
  })

  it.each([undefined, null, 'done', {}])('to a completion (%s) is none', async (answer) => {
    const inner = memoryStore()
    let calls = 0
    const store = withOperations(inner, {})
    Reflect.set(store, 'complete', async (...call: Parameters<Store['complete']>) => {
      calls += 1
      return calls === 1 ? answer : inner.complete(...call)
    })
    const { observer, heard } = recorder()
    const receiver = receiverOf(store, () => {}, { observer })
    expect((await receiver.receive(signed('{}'), undefined)).status).toBe('processing')
    await heard('settle_recovered')
    expect((await inner.list()).records[0]?.state).toBe('completed')
  })

  it('to a renewal is none', async () => {
    let renewed: unknown
    const receiver = receiverOf(answering('renew', undefined), async (webhook) => {
      renewed = await webhook.renew().catch((error: unknown) => error)
    })
    await receiver.receive(signed('{}'), undefined)
    expect(renewed).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' })
  })
})

describe('a store that is slower than the lease', () => {
  it('grants no claim whose lease is over when the answer comes', async () => {
    const inner = memoryStore()
    const slow = gate()
    const store = withOperations(inner, {
      async claim(entries) {
        const answer = await inner.claim(entries)
        await slow.opened
        return answer
      },
    })
    let runs = 0
    const receiver = receiverOf(store, () => (runs += 1), { leaseMs: 20, storeTimeoutMs: 60_000 })
    expect(await receiver.receive(signed('{}'), undefined)).toMatchObject({
      status: 'refused',
      code: 'store_unavailable',
    })
    slow.open()
    await receiver.inbox.drain()
    expect(runs).toBe(0)
  })

  it('aborts the signal before the lease ends when a renewal is not answered', async () => {
    const store = withOperations(memoryStore(), { renew: () => new Promise(() => {}) })
    const leaseMs = 1500
    let abortedAfterMs = Number.POSITIVE_INFINITY
    const run = async ({ signal }: ClaimedDelivery): Promise<void> => {
      const startedAtMs = performance.now()
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      expect(signal.reason).toBe('lease_lost')
      abortedAfterMs = performance.now() - startedAtMs
    }
    await receiverOf(store, run, { leaseMs, storeTimeoutMs: 60_000 }).receive(
      signed('{}'),
      undefined,
    )
    expect(abortedAfterMs).toBeLessThan(leaseMs)
  })
})

describe('drain', () => {
  it('waits for a request that is asking for its claim', async () => {
    const inner = memoryStore()
    const asked = gate()
    const slow = gate()
    const store = withOperations(inner, {
      async claim(entries) {
        asked.open()
        await slow.opened
        return inner.claim(entries)
      },
    })
    const order: string[] = []
    const receiver = receiverOf(store, () => order.push('ran'))
    const answered = receiver.receive(signed('{}'), undefined)
    await asked.opened
    expect(await receiver.inbox.drain({ timeoutMs: 0 })).toEqual({ drained: false, running: 1 })
    const drained = receiver.inbox.drain().then((result) => {
      order.push('drained')
      return result
    })
    slow.open()
    await answered
    expect(await drained).toEqual({ drained: true, running: 0 })
    expect(order).toEqual(['ran', 'drained'])
  })

  it.each([-1, Number.NaN, '5', null])('refuses %s as time', async (timeoutMs) => {
    const { inbox } = receiverOf(memoryStore(), () => {})
    await expect(Reflect.apply(inbox.drain, undefined, [{ timeoutMs }])).rejects.toMatchObject({
      code: 'ERR_OPTION',
    })
  })
})
