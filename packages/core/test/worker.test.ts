import { createInbox, createWorker, memoryStore, PermanentError } from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { gate, secret, withOperations } from './support.ts'
import { createQueue, keyOf, queueOn } from './worker-support.ts'

const neverPolls = { pollMs: 2_147_483_647, purge: false } as const

describe('a worker', () => {
  it('runs what was stored, with its exact bytes, and completes it', async () => {
    const { send, stateOf, inbox, events } = createQueue()
    const receipt = await send('d-1', {
      event: 'issues',
      payload: { action: 'opened', text: 'é☕' },
    })
    expect(receipt).toMatchObject({ status: 'pending', answer: { status: 202 } })
    const runs: unknown[] = []
    const worker = createWorker({
      inbox,
      handler({ payload, rawBody, event, action, id, key, attempt, headers }, { signal }) {
        runs.push({ payload, event, action, id, key, attempt, aborted: signal.aborted })
        expect(new TextDecoder().decode(rawBody)).toBe('{"action":"opened","text":"é☕"}')
        expect(headers['x-github-event']).toBe('issues')
        // The signature was checked; it is not kept.
        expect(JSON.stringify(headers)).not.toContain('sha256')
      },
    })
    await worker.drain()
    expect(runs).toEqual([
      {
        payload: { action: 'opened', text: 'é☕' },
        event: 'issues',
        action: 'opened',
        id: 'd-1',
        key: keyOf('d-1'),
        attempt: 1,
        aborted: false,
      },
    ])
    expect(await stateOf('d-1')).toBe('completed')
    expect(events.map(({ type }) => type)).toEqual(['verified', 'stored', 'claimed', 'completed'])
    expect(await send('d-1')).toMatchObject({ status: 'completed', answer: { status: 200 } })
  })

  it('shares the work with others: none runs twice', async () => {
    const { sendAll, inbox } = createQueue()
    const ids = await sendAll(200)
    const runs: string[] = []
    const workers = Array.from({ length: 4 }, () =>
      createWorker({
        inbox,
        concurrency: 7,
        async handler({ id }) {
          runs.push(id)
          await new Promise(setImmediate)
        },
      }),
    )
    await Promise.all(workers.map((worker) => worker.drain()))
    expect(runs.toSorted()).toEqual(ids.toSorted())
    expect((await inbox.stats()).states.completed).toBe(200)
  })

  it('runs no more than "concurrency" at the same time, and fills a place that is free', async () => {
    const { sendAll, inbox } = createQueue()
    await sendAll(10)
    let running = 0
    let most = 0
    const slow = gate()
    let runs = 0
    const worker = createWorker({
      inbox,
      concurrency: 3,
      async handler() {
        running += 1
        most = Math.max(most, running)
        runs += 1
        // The first holds its place while the other two do all the rest.
        if (runs === 1) await slow.opened
        else await new Promise(setImmediate)
        running -= 1
        if (runs === 10 && running === 1) slow.open()
      },
    })
    await worker.drain()
    expect({ most, runs }).toEqual({ most: 3, runs: 10 })
  })

  it('can be drained again and again, and started meanwhile', async () => {
    const { send, stateOf, inbox } = createQueue()
    const worker = createWorker({ inbox, handler: () => {}, ...neverPolls })
    await worker.drain()
    await worker.drain()
    await send('d-1')
    await Promise.all([worker.drain(), worker.drain()])
    expect(await stateOf('d-1')).toBe('completed')
    expect(worker.health().state).toBe('new')
    worker.start()
    await send('d-2')
    await worker.drain()
    expect(await stateOf('d-2')).toBe('completed')
    await worker.stop()
  })

  it('drains what a run puts back at the very moment when the store finds nothing', async () => {
    const asked = gate()
    let takes = 0
    const { send, stateOf, inbox, heard } = createQueue({
      retry: { random: () => 0 },
      wrap: (store) =>
        withOperations(store, {
          async take(options) {
            takes += 1
            const found = await store.take(options)
            if (takes !== 2) return found
            asked.open()
            // The answer is "nothing", and comes when the run has been settled.
            await heard('failed')
            return found
          },
        }),
    })
    await send('d-1')
    const attempts: number[] = []
    let again: Promise<void> | undefined
    const worker = createWorker({
      inbox,
      concurrency: 2,
      onError: () => {},
      async handler({ attempt }) {
        attempts.push(attempt)
        if (attempt > 1) return
        again = worker.drain()
        await asked.opened
        throw new Error('once more')
      },
    })
    await worker.drain()
    await again
    expect(attempts).toEqual([1, 2])
    expect(await stateOf('d-1')).toBe('completed')
  })

  it('starts at once what comes in, without polling', async () => {
    const { send, inbox, heard } = createQueue()
    const worker = createWorker({ inbox, handler: () => {}, ...neverPolls })
    worker.start()
    await worker.drain()
    await send('d-1')
    await heard('completed')
    await worker.stop()
  })

  it('hears what came while its watch was being opened', async () => {
    const opening = gate()
    const { send, inbox, heard } = createQueue({
      wrap: (store) =>
        withOperations(store, {
          async watch(onWork) {
            await opening.opened
            return (await store.watch?.(onWork)) ?? { reach: 'all', close: async () => {} }
          },
        }),
    })
    const worker = createWorker({ inbox, handler: () => {}, ...neverPolls })
    worker.start()
    await worker.drain()
    await send('d-1')
    opening.open()
    await heard('completed')
    await worker.stop()
  })

  it('polls where the store tells nothing', async () => {
    const { send, inbox, heard } = createQueue({
      wrap({ watch: _, ...store }) {
        return store
      },
    })
    const worker = createWorker({ inbox, handler: () => {}, pollMs: 5, purge: false })
    worker.start()
    await worker.drain()
    await send('d-1')
    await heard('completed')
    await worker.stop()
  })

  it('runs a failed delivery when it is due, without polling', async () => {
    const inbox = createInbox({
      store: memoryStore(),
      retry: { minMs: 10, random: () => 1 },
      onError: () => {},
    })
    const twice = gate()
    const worker = createWorker({
      inbox,
      ...neverPolls,
      handler({ attempt }) {
        if (attempt === 3) return twice.open()
        throw new Error('not yet')
      },
    })
    worker.start()
    await queueOn(inbox).send('d-1')
    await twice.opened
    await worker.stop()
  })

  it('tells how it does', async () => {
    const { send, inbox } = createQueue()
    const held = gate()
    const started = gate()
    const worker = createWorker({
      inbox,
      ...neverPolls,
      handler() {
        started.open()
        return held.opened
      },
    })
    expect(worker.health()).toEqual({ state: 'new', running: 0, failedTakes: 0 })
    worker.start()
    await send('d-1')
    await started.opened
    expect(worker.health()).toMatchObject({ state: 'started', running: 1, failedTakes: 0 })
    expect(Date.now() - Number(worker.health().lastTakeAt)).toBeLessThan(5000)
    const stopped = worker.stop()
    expect(worker.health().state).toBe('stopping')
    held.open()
    await stopped
    expect(worker.health()).toMatchObject({ state: 'stopped', running: 0 })
  })

  it('removes what is over, in batches, from time to time', async () => {
    const { sendAll, inbox, clock, inner } = createQueue({ retention: { completedMs: 1000 } })
    await sendAll(5)
    await createWorker({ inbox, handler: () => {} }).drain()
    clock.nowMs += 1000
    const limits: number[] = []
    const gone = gate()
    const watched = createInbox({
      store: withOperations(inner, {
        async purge(limit) {
          limits.push(limit)
          const purged = await inner.purge(limit)
          if (purged < limit) gone.open()
          return purged
        },
      }),
    })
    const worker = createWorker({
      inbox: watched,
      handler: () => {},
      purge: { everyMs: 10, limit: 2 },
    })
    worker.start()
    await gone.opened
    await worker.stop()
    expect(limits).toEqual([2, 2, 2])
    expect((await inbox.stats()).states.completed).toBe(0)
  })

  it('goes on purging after the store failed to', async () => {
    const { inbox, errors, events } = createQueue({
      wrap: (store) =>
        withOperations(store, {
          async purge() {
            purges += 1
            if (purges === 1) throw new Error('down')
            again.open()
            return 0
          },
        }),
    })
    let purges = 0
    const again = gate()
    const worker = createWorker({ inbox, handler: () => {}, purge: { everyMs: 5 } })
    worker.start()
    await again.opened
    await worker.stop()
    expect(errors).toEqual([new Error('down')])
    expect(events).toEqual([{ type: 'store_unavailable', operation: 'purge' }])
  })
})

describe('handlers by name', () => {
  async function ranBy(
    names: readonly string[],
    event: string,
    action?: string,
  ): Promise<string | undefined> {
    const { send, recordOf, inbox } = createQueue()
    let ran: string | undefined
    await send('d-1', { event, payload: action === undefined ? {} : { action } })
    await createWorker({
      inbox,
      handlers: Object.fromEntries(
        names.map((name) => [
          name,
          () => {
            ran = name
          },
        ]),
      ),
    }).drain()
    const record = await recordOf('d-1')
    if (ran !== undefined) expect(record?.state).toBe('completed')
    else expect(record).toMatchObject({ state: 'dead', code: 'no_handler', hasPayload: true })
    return ran
  }

  it('are asked from the most exact to the least', async () => {
    const names = [
      'github.pull_request.opened',
      'github.pull_request',
      'pull_request.opened',
      'pull_request',
      'github.*',
      '*',
    ]
    for (const [index, name] of names.entries()) {
      expect(await ranBy(names.slice(index).reverse(), 'pull_request', 'opened')).toBe(name)
    }
    expect(await ranBy(names, 'pull_request', 'closed')).toBe('github.pull_request')
    expect(await ranBy(names, 'push')).toBe('github.*')
  })

  it('make a delivery dead that none fits', async () => {
    expect(await ranBy(['push', 'stripe.*', 'issues.opened'], 'issues', 'closed')).toBe(undefined)
    // Names that are special to JavaScript are names like any other.
    expect(await ranBy(['push'], 'constructor')).toBe(undefined)
    expect(await ranBy(['push'], '__proto__', 'toString')).toBe(undefined)
  })

  it('run a dead delivery once there is a handler and an operator retries it', async () => {
    const { send, stateOf, inbox } = createQueue()
    await send('d-1', { event: 'issues' })
    await createWorker({ inbox, handlers: { push() {} } }).drain()
    expect(await stateOf('d-1')).toBe('dead')
    expect(await inbox.retryAll()).toEqual({
      pending: 1,
      needs_redelivery: 0,
      not_found: 0,
      not_retryable: 0,
    })
    await createWorker({ inbox, handlers: { issues() {} } }).drain()
    expect(await stateOf('d-1')).toBe('completed')
  })

  it('run what an entry of their own sent, also one that this process does not know', async () => {
    const { inner, inbox } = createQueue()
    const entry = (provider: string, body: string) =>
      ({
        key: { provider, endpoint: '', deliveryId: body },
        token: 't',
        leaseMs: 1000,
        mode: 'queued',
        event: 'made',
        payload: { body: new TextEncoder().encode(body), headers: {} },
        unfinishedRetentionMs: 1000,
      }) as const
    await inner.claim([entry('acme', '{"a":1}'), entry('acme', 'no json')])
    const payloads: unknown[] = []
    await createWorker({
      inbox,
      concurrency: 1,
      handlers: { 'acme.made': ({ payload, id }) => void payloads.push([id, payload]) },
    }).drain()
    expect(payloads).toEqual([
      ['{"a":1}', { a: 1 }],
      ['no json', undefined],
    ])
  })
})

describe('options of a worker', () => {
  const inbox = createInbox({ store: memoryStore() })
  const handler = () => {}
  it.each([
    [{}, /"inbox" must be what createInbox/],
    [{ inbox: memoryStore(), handler }, /"inbox" must be what createInbox/],
    [{ inbox }, /"handler" is missing\. Pass async \(webhook\) => /],
    [{ inbox, handler: 'push' }, /"handler" is no function/],
    [{ inbox, handler, handlers: { push: handler } }, /"handler" or "handlers", not both/],
    [{ inbox, handlers: {} }, /"handlers" is empty/],
    [{ inbox, handlers: [handler] }, /"handlers" must be an object of names and handlers/],
    [
      { inbox, handlers: { 'pull_request.*': handler } },
      /"pull_request\.\*" in "handlers" matches nothing/,
    ],
    [{ inbox, handlers: { 'a b': handler } }, /"a b" in "handlers" matches nothing/],
    [{ inbox, handlers: { push: undefined } }, /the handler of "push" is missing/],
    [
      { inbox, handlers: { push: { handler, retries: {} } } },
      /the handler of "push": unknown option "retries"/,
    ],
    [
      { inbox, handlers: { push: { handler, retry: { maxAttempt: 1 } } } },
      /Did you mean "maxAttempts"/,
    ],
    [
      { inbox, handlers: { push: { handler, retry: { minMs: 9, maxMs: 1 } } } },
      /"retry\.maxMs" \(1\) is below/,
    ],
    [{ inbox, handler, concurrency: 0 }, /"concurrency" must be a positive whole number/],
    [{ inbox, handler, pollMs: 0 }, /"pollMs" must be a whole number of milliseconds/],
    [{ inbox, handler, purge: { every: 1 } }, /unknown option "every"\. Did you mean "everyMs"/],
    [{ inbox, handler, purge: true }, /"purge": pass an object/],
    [{ inbox, handler, purge: { limit: 0 } }, /"purge": "limit" must be a whole number/],
    [{ inbox, handler, deadBlocksOrder: 1 }, /"deadBlocksOrder" must be true or false/],
    [{ inbox, handler, providers: {} }, /"providers" must be a list/],
    [{ inbox, handler, onError: 1 }, /"onError" must be a function/],
    [{ inbox, handler, leaseMs: 1 }, /unknown option "leaseMs"/],
  ])('%# %o', (options, message) => {
    expect(() => Reflect.apply(createWorker, undefined, [options])).toThrow(message)
    expect(() => Reflect.apply(createWorker, undefined, [options])).toThrow(
      expect.objectContaining({ code: 'ERR_OPTION' }),
    )
  })

  it('are checked for stop as well', async () => {
    const worker = createWorker({ inbox, handler })
    await expect(Reflect.apply(worker.stop, undefined, [{ timeoutMs: 'soon' }])).rejects.toThrow(
      /"timeoutMs" must be a number of milliseconds/,
    )
  })

  it('take an error that says "never" from a handler of either kind', async () => {
    const { send, recordOf, inbox: own } = createQueue()
    await send('d-1')
    await createWorker({
      inbox: own,
      onError: () => {},
      handlers: {
        push: {
          handler() {
            throw new PermanentError(secret)
          },
        },
      },
    }).drain()
    expect(await recordOf('d-1')).toMatchObject({ state: 'dead', code: 'handler_rejected' })
  })
})
