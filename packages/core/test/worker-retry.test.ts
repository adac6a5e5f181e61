import {
  createWorker,
  type InboxOptions,
  PermanentError,
  RetryError,
  type RetryOptions,
} from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { createQueue, turns } from './worker-support.ts'

const atOnce: RetryOptions = { random: () => 1 }

describe('a run that fails', () => {
  it('is run again after a wait that doubles, up to the cap, and is dead at the limit', async () => {
    const { send, recordOf, inbox, clock } = createQueue({
      retry: { ...atOnce, minMs: 1000, maxMs: 20_000 },
    })
    await send('d-1')
    const runs: number[] = []
    const worker = createWorker({
      inbox,
      handler({ attempt }) {
        runs.push(attempt)
        throw new Error('not now')
      },
    })
    const waits: number[] = []
    for (let attempt = 1; attempt < 8; attempt++) {
      await worker.drain()
      const record = await recordOf('d-1')
      expect(record).toMatchObject({ state: 'failed', attempt, code: 'handler_error' })
      const waitMs = (record?.dueAt?.getTime() ?? 0) - clock.nowMs
      waits.push(waitMs)
      // Not one millisecond sooner.
      clock.nowMs += waitMs - 1
      await worker.drain()
      expect(runs).toHaveLength(attempt)
      clock.nowMs += 1
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 20_000, 20_000])
    await worker.drain()
    expect(runs).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
    expect(await recordOf('d-1')).toMatchObject({ state: 'dead', code: 'handler_error' })
    expect((await recordOf('d-1'))?.attempts).toHaveLength(8)
    clock.nowMs += 86_400_000
    await worker.drain()
    expect(runs).toHaveLength(8)
    await worker.stop()
  })

  it.each([
    [0, 0],
    [0.5, 500],
    [1, 1000],
  ])('waits anything up to that: %f of it is %i ms', async (share, waitMs) => {
    const { send, recordOf, inbox, clock } = createQueue({ retry: { random: () => share } })
    await send('d-1')
    let runs = 0
    await createWorker({
      inbox,
      handler() {
        runs += 1
        // With no wait at all it would be run eight times at once.
        throw runs === 1 ? new Error('not now') : new PermanentError('never')
      },
    }).drain()
    const record = await recordOf('d-1')
    if (waitMs === 0) expect(record?.state).toBe('dead')
    else expect((record?.dueAt?.getTime() ?? 0) - clock.nowMs).toBe(waitMs)
  })

  it('is dead at once when its handler says that it can never succeed', async () => {
    const { send, recordOf, inbox } = createQueue()
    await send('thrown')
    await send('said')
    await createWorker({
      inbox,
      handler(webhook) {
        if (webhook.id === 'thrown') throw new PermanentError('no such order')
        webhook.fail(new Error('no such order'), { retryable: false })
      },
    }).drain()
    expect(await recordOf('thrown')).toMatchObject({ state: 'dead', code: 'handler_rejected' })
    expect(await recordOf('said')).toMatchObject({ state: 'dead', code: 'handler_failed' })
  })

  it('has the policy of its handler where that has one', async () => {
    const { send, recordOf, inbox, clock } = createQueue({ retry: { ...atOnce, maxAttempts: 5 } })
    await send('p', { event: 'push' })
    await send('i', { event: 'issues' })
    const worker = createWorker({
      inbox,
      handlers: {
        push: {
          handler: () => Promise.reject(new Error('no')),
          retry: { maxAttempts: 1 },
        },
        issues: {
          handler: () => Promise.reject(new Error('no')),
          retry: { minMs: 70, maxMs: 100, maxAttempts: 9 },
        },
      },
    })
    await worker.drain()
    expect(await recordOf('p')).toMatchObject({ state: 'dead', attempt: 1 })
    const dueMs = async () => (await recordOf('i'))?.dueAt?.getTime() ?? 0
    expect((await dueMs()) - clock.nowMs).toBe(70)
    for (let attempt = 2; attempt <= 9; attempt++) {
      clock.nowMs = await dueMs()
      await worker.drain()
      expect((await recordOf('i'))?.attempt).toBe(attempt)
    }
    expect((await recordOf('i'))?.state).toBe('dead')
  })

  it('waits as long as what was thrown says', async () => {
    const date = new Date(Date.now() + 120_000).toUTCString()
    const hostile = {
      get retryAfter() {
        throw new Error('a trap')
      },
    }
    const hints: readonly (readonly [unknown, number])[] = [
      [new RetryError('busy', { retryInMs: 12_345 }), 12_345],
      [Object.assign(new Error('busy'), { retryAfter: 7 }), 7000],
      [Object.assign(new Error('busy'), { retryAfter: '7' }), 7000],
      [Object.assign(new Error('busy'), { headers: { 'retry-after': '3' } }), 3000],
      [{ response: { headers: new Headers({ 'Retry-After': '4' }) } }, 4000],
      [{ response: { headers: new Headers() } }, 1000],
      [{ retryAfter: date }, 120_000],
      [{ retryAfter: 'soon' }, 1000],
      [{ retryAfter: -5 }, 1000],
      [{ retryAfter: Number.NaN }, 1000],
      [{ retryAfter: 1e12 }, 7 * 86_400_000],
      [hostile, 1000],
      ['a text', 1000],
      [undefined, 1000],
      [null, 1000],
    ]
    const { send, recordOf, inbox, clock } = createQueue({ retry: atOnce })
    for (const index of hints.keys()) await send(`d-${index}`)
    await createWorker({
      inbox,
      handler({ id }) {
        throw hints[Number(id.slice(2))]?.[0]
      },
    }).drain()
    for (const [index, [, waitMs]] of hints.entries()) {
      const found = ((await recordOf(`d-${index}`))?.dueAt?.getTime() ?? 0) - clock.nowMs
      // A date has whole seconds, and time goes on.
      expect(Math.abs(found - waitMs), `hint ${index}`).toBeLessThan(2000)
      if (index !== 6) expect(found, `hint ${index}`).toBe(waitMs)
    }
  })

  it('refuses a hint that is none where it is made', () => {
    for (const retryInMs of [-1, Number.NaN, '5'])
      expect(() => Reflect.construct(RetryError, ['x', { retryInMs }])).toThrow(/"retryInMs"/)
  })
})

describe('a run that takes too long', () => {
  it('is aborted and fails, and its place is free although the handler goes on', async () => {
    const { send, recordOf, stateOf, inbox, events } = createQueue({
      maxRunMs: 30,
      retry: atOnce,
    } satisfies Omit<InboxOptions, 'store'>)
    await send('slow')
    let reason: unknown
    const worker = createWorker({
      inbox,
      concurrency: 1,
      handler: (webhook) =>
        webhook.id === 'slow'
          ? new Promise(() => {
              webhook.signal.addEventListener('abort', () => {
                reason = webhook.signal.reason
              })
            })
          : undefined,
    })
    worker.start()
    await expect.poll(() => stateOf('slow')).toBe('failed')
    expect(reason).toBe('timeout')
    expect(await recordOf('slow')).toMatchObject({ code: 'run_timeout' })
    await send('next')
    await expect.poll(() => stateOf('next')).toBe('completed')
    expect(events.map(({ type }) => type)).toContain('run_timeout')
    expect(await worker.stop()).toEqual({ running: 0 })
  })
})

describe('a worker that stops', () => {
  it('waits for what runs, and takes nothing more', async () => {
    const { send, stateOf, inbox } = createQueue()
    let finish = (): void => {}
    const worker = createWorker({
      inbox,
      handler: () =>
        new Promise<void>((resolve) => {
          finish = resolve
        }),
    })
    await send('d-1')
    worker.start()
    await expect.poll(() => worker.health().running).toBe(1)
    const stopped = worker.stop()
    const again = worker.stop()
    await send('d-2')
    await turns()
    expect(worker.health().state).toBe('stopping')
    finish()
    expect([await stopped, await again]).toEqual([{ running: 0 }, { running: 0 }])
    expect([await stateOf('d-1'), await stateOf('d-2')]).toEqual(['completed', 'pending'])
    expect(() => worker.start()).toThrow(/Make another one/)
    await expect(worker.drain()).rejects.toThrow(/Make another one/)
  })

  it('aborts what does not end in time, and gives it back without counting the attempt', async () => {
    const { send, recordOf, inbox, events } = createQueue()
    const reasons: unknown[] = []
    const worker = createWorker({
      inbox,
      handler: ({ id, signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason)
            // The other one does not heed it.
            if (id === 'heeds') reject(new Error('aborted'))
          })
        }),
    })
    await send('heeds')
    await send('ignores')
    worker.start()
    await expect.poll(() => worker.health().running).toBe(2)
    expect(await worker.stop({ timeoutMs: 10 })).toEqual({ running: 1 })
    expect(reasons).toEqual(['shutdown', 'shutdown'])
    for (const id of ['heeds', 'ignores'])
      expect(await recordOf(id)).toMatchObject({ state: 'pending', attempt: 0 })
    expect(events.filter(({ type }) => type === 'released')).toHaveLength(2)
  })
})

describe('what has outlived its owners', () => {
  it('runs alone, one after another, and the others go on', async () => {
    const { sendAll, inner, inbox, clock, stateOf } = createQueue({ leaseMs: 1000 })
    const ids = await sendAll(6)
    for (let owner = 0; owner < 2; owner++) {
      await inner.take({ limit: 6, leaseMs: 1000, deadRetentionMs: 1000 })
      clock.nowMs += 1001
    }
    let running = 0
    const companies: number[] = []
    await createWorker({
      inbox,
      async handler({ attempt }) {
        running += 1
        if (attempt > 2) companies.push(running)
        await turns(20)
        if (attempt > 2) companies.push(running)
        running -= 1
      },
    }).drain()
    expect(companies).toEqual(Array.from({ length: 12 }, () => 1))
    for (const id of ids) expect(await stateOf(id)).toBe('completed')
  })
})
