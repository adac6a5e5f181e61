import {
  type ClaimedReceipt,
  createInbox,
  createReceiver,
  memoryStore,
  PermanentError,
  type Receipt,
  type ReceiverOptions,
  type Store,
  storeUnavailable,
} from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { gate, recorder, secret, signed, withOperations } from './support.ts'

function receiverOf(options: Partial<ReceiverOptions> & { store: Store }) {
  return createReceiver({ provider: 'github', secret, ...options })
}

function claimedOf(receipt: Receipt): ClaimedReceipt {
  if (receipt.status !== 'claimed') throw new Error(`expected a claim, got ${receipt.status}`)
  return receipt
}

describe('a claim that the store answers too late', () => {
  it('is refused with 503, abandoned, and blocks nobody', async () => {
    const inner = memoryStore()
    const slow = gate()
    let claims = 0
    const store = withOperations(inner, {
      async claim(entries) {
        claims += 1
        if (claims === 1) await slow.opened
        return inner.claim(entries)
      },
    })
    const { observer, heard } = recorder()
    const receiver = receiverOf({ store, observer, storeTimeoutMs: 20 })
    const first = await receiver.receive(signed('{}'), undefined)
    expect(first).toMatchObject({ status: 'refused', code: 'store_unavailable' })
    if (first.status === 'claimed') throw new Error('claimed')
    expect(first.answer.status).toBe(503)
    expect(first.answer.headers['retry-after']).toBe('1')
    expect(await heard('store_unavailable')).toMatchObject({ operation: 'claim' })
    // The claim lands after its owner has gone: it must be given back.
    slow.open()
    expect(await receiver.inbox.drain({ timeoutMs: 5000 })).toEqual({ drained: true, running: 0 })
    const second = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect(second.webhook.attempt).toBe(1)
  })

  it('is abandoned until the store has answered', async () => {
    const inner = memoryStore()
    let abandons = 0
    const store = withOperations(inner, {
      async claim(entries) {
        await inner.claim(entries)
        throw storeUnavailable('connection reset after the claim was done')
      },
      async abandon(key, token) {
        abandons += 1
        if (abandons < 3) throw storeUnavailable('still down')
        return inner.abandon(key, token)
      },
    })
    const receiver = receiverOf({ store })
    expect((await receiver.receive(signed('{}'), undefined)).status).toBe('refused')
    expect((await receiver.inbox.drain({ timeoutMs: 5000 })).drained).toBe(true)
    expect(abandons).toBe(3)
    const record = (await inner.list()).records[0]
    expect(record).toMatchObject({ state: 'failed', attempt: 0 })
  })
})

describe('a store that fails at the moment of completion', () => {
  it("lets the handler's own answer out and completes later", async () => {
    const inner = memoryStore()
    let failures = 2
    const store = withOperations(inner, {
      async complete(hold, options) {
        if (failures-- > 0) throw storeUnavailable('down')
        return inner.complete(hold, options)
      },
    })
    const { observer, events, heard } = recorder()
    const receiver = receiverOf({ store, observer })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect(await receipt.settle({ status: 204 })).toEqual({ state: 'processing' })
    expect(events.map((event) => event.type)).toContain('settle_pending')
    await heard('settle_recovered')
    expect((await inner.get(receipt.webhook.key))?.state).toBe('completed')
    expect((await inner.get(receipt.webhook.key))?.code).toBeUndefined()
  })

  it('keeps the lease alive meanwhile, so that no copy runs', async () => {
    const inner = memoryStore()
    const down = gate()
    let renewals = 0
    const renewedTwice = gate()
    const store = withOperations(inner, {
      async complete(hold, options) {
        await down.opened
        return inner.complete(hold, options)
      },
      async renew(hold, leaseMs) {
        renewals += 1
        if (renewals === 2) renewedTwice.open()
        return inner.renew(hold, leaseMs)
      },
    })
    const receiver = receiverOf({ store, leaseMs: 90, storeTimeoutMs: 20 })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect((await receipt.settle({ status: 200 })).state).toBe('processing')
    await renewedTwice.opened
    expect((await receiver.receive(signed('{}'), undefined)).status).toBe('processing')
    down.open()
    await receiver.inbox.drain({ timeoutMs: 5000 })
    expect((await receiver.receive(signed('{}'), undefined)).status).toBe('completed')
  })
})

describe('a lost claim', () => {
  it('answers 503 when the record is not completed', async () => {
    const clock = { now: 1_000_000 }
    const store = memoryStore({ now: () => clock.now })
    const receiver = receiverOf({ store })
    const first = claimedOf(await receiver.receive(signed('{}'), undefined))
    clock.now += 31_000
    const second = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect(second.webhook.attempt).toBe(2)
    expect(second.webhook.fence).toBeGreaterThan(first.webhook.fence)
    const settlement = await first.settle({ status: 200 })
    expect(settlement).toMatchObject({ state: 'lost', replace: { status: 503 } })
    expect(settlement.replace?.headers['retry-after']).toBe('1')
  })

  it("gives the handler's own answer when the other holder has completed it", async () => {
    const clock = { now: 1_000_000 }
    const { observer, events } = recorder()
    const receiver = receiverOf({ store: memoryStore({ now: () => clock.now }), observer })
    const first = claimedOf(await receiver.receive(signed('{}'), undefined))
    clock.now += 31_000
    const second = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect(await second.settle({ status: 200 })).toEqual({ state: 'completed' })
    expect(await first.settle({ status: 200 })).toEqual({ state: 'completed' })
    // That it ran twice must not be hidden from whoever watches.
    expect(
      events
        .filter(({ type }) => type === 'completed' || type === 'claim_lost')
        .map((event) => [event.type, 'attempt' in event && event.attempt]),
    ).toEqual([
      ['completed', 2],
      ['claim_lost', 1],
    ])
  })

  it("aborts the handler's signal when a renewal says so", async () => {
    const inner = memoryStore()
    const store = withOperations(inner, { renew: async () => 'lost' })
    const { observer, heard } = recorder()
    const receiver = receiverOf({ store, observer, leaseMs: 30 })
    const { webhook } = claimedOf(await receiver.receive(signed('{}'), undefined))
    await heard('lease_lost')
    expect(webhook.signal.aborted).toBe(true)
    expect(webhook.signal.reason).toBe('lease_lost')
  })

  it('aborts before the lease ends when renewals are not answered', async () => {
    const inner = memoryStore()
    const store = withOperations(inner, { renew: () => new Promise(() => {}) })
    const { observer, heard } = recorder()
    const receiver = receiverOf({ store, observer, leaseMs: 900, storeTimeoutMs: 20 })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    await heard('lease_lost')
    expect((await inner.get(receipt.webhook.key))?.abandoned).toBe(false)
    expect(receipt.webhook.signal.reason).toBe('lease_lost')
  })
})

describe('maxRunMs', () => {
  it('aborts the signal, fails the delivery and offers an answer', async () => {
    const store = memoryStore()
    const receiver = receiverOf({ store, maxRunMs: 20 })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    const settlement = await new Promise((resolve) => receipt.onTimeout(resolve))
    expect(settlement).toMatchObject({ state: 'failed', replace: { status: 503 } })
    expect(receipt.webhook.signal.reason).toBe('timeout')
    expect((await store.get(receipt.webhook.key))?.code).toBe('run_timeout')
    // The handler ends at last: nothing is settled twice.
    expect(await receipt.settle({ status: 200 })).toEqual(settlement)
  })

  it('answers a handler that never ends', async () => {
    const receiver = receiverOf({
      store: memoryStore(),
      maxRunMs: 20,
      handler: () => new Promise(() => {}),
    })
    const receipt = await receiver.receive(signed('{}'), undefined)
    expect(receipt).toMatchObject({ status: 'failed', answer: { status: 503 } })
  })
})

describe('retry and retention', () => {
  it('has no attempt limit inline unless one is set', async () => {
    const receiver = receiverOf({ store: memoryStore() })
    for (let attempt = 1; attempt <= 20; attempt++) {
      const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
      expect(receipt.webhook.attempt).toBe(attempt)
      expect((await receipt.settle({ status: 500 })).state).toBe('failed')
    }
  })

  it('makes the last of maxAttempts dead', async () => {
    const receiver = receiverOf({ store: memoryStore(), retry: { maxAttempts: 2 } })
    const first = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect((await first.settle({ status: 500 })).state).toBe('failed')
    const second = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect((await second.settle({ status: 500 })).state).toBe('dead')
    const third = await receiver.receive(signed('{}'), undefined)
    expect(third).toMatchObject({ status: 'dead', answer: { status: 202 } })
  })

  it('keeps a delivery whose last owner died as long as any dead one', async () => {
    const clock = { now: 1_000_000 }
    const store = memoryStore({ now: () => clock.now })
    const retention = { deadMs: 5000, unfinishedMs: 90_000 }
    const receiver = receiverOf({ store, retention, retry: { maxAttempts: 1 } })
    const { webhook } = claimedOf(await receiver.receive(signed('{}'), undefined))
    clock.now += 31_000
    expect((await receiver.receive(signed('{}'), undefined)).status).toBe('dead')
    expect((await store.get(webhook.key))?.purgeAt?.getTime()).toBe(clock.now + 5000)
  })

  it('keeps completed ids 30 days and never less than the provider asks for', async () => {
    const day = 86_400_000
    const clock = { now: 1_000_000 }
    const store = memoryStore({ now: () => clock.now })
    const receiver = receiverOf({ store })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    await receipt.settle({ status: 200 })
    const record = await store.get(receipt.webhook.key)
    expect(record?.purgeAt?.getTime()).toBe(clock.now + 30 * day)
  })

  it('warns when retention is shorter than the redelivery window', () => {
    const { observer, events } = recorder()
    receiverOf({ store: memoryStore(), observer, retention: { completedMs: 60_000 } })
    expect(events).toEqual([{ type: 'warning', code: 'retention_short', provider: 'github' }])
  })
})

describe('a dead letter', () => {
  it('keeps no bytes by default: it needs the sender to send it again', async () => {
    const receiver = receiverOf({ store: memoryStore() })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    await receipt.settle({ status: 422 })
    expect((await receiver.inbox.get(receipt.webhook.key))?.hasPayload).toBe(false)
    expect(await receiver.inbox.retry(receipt.webhook.key)).toBe('needs_redelivery')
  })

  it('keeps the exact bytes and the headers it reads with keepBody, the signature never', async () => {
    const store = memoryStore()
    const receiver = receiverOf({ store, deadLetter: { keepBody: true } })
    const request = signed('{"a":"é"}', { authorization: 'Bearer credentials', cookie: 'a=b' })
    const receipt = claimedOf(await receiver.receive(request, undefined))
    await receipt.settle({ status: 422 })
    expect(await receiver.inbox.retry(receipt.webhook.key)).toBe('pending')
    const [taken] = await store.take({ limit: 1, leaseMs: 1000, deadRetentionMs: 1000 })
    expect(taken?.payload.body).toEqual(request.body)
    expect(taken?.payload.headers).toEqual({
      'content-type': 'application/json',
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-github-event': 'push',
      'x-github-hook-id': '292430182',
    })
  })
})

describe('a handler that owns the promise', () => {
  it('completes on return, fails on throw, dies on PermanentError', async () => {
    const thrown: unknown[] = []
    const outcomes: Record<string, () => unknown> = {
      good: () => undefined,
      bad: () => {
        throw new Error('database of the user')
      },
      never: async () => {
        throw new PermanentError('no such account')
      },
    }
    const store = memoryStore()
    const receiver = receiverOf({
      store,
      onError: (error) => thrown.push(error),
      handler: (webhook) => outcomes[webhook.event]?.(),
    })
    const of = (event: string) =>
      receiver.receive(
        signed('{}', { 'x-github-event': event, 'x-github-delivery': event }),
        undefined,
      )
    expect(await of('good')).toMatchObject({ status: 'completed', answer: { status: 200 } })
    expect(await of('bad')).toMatchObject({ status: 'failed', answer: { status: 500 } })
    expect(await of('never')).toMatchObject({ status: 'dead', answer: { status: 422 } })
    expect(thrown).toHaveLength(2)
    expect(JSON.stringify([await of('bad'), await of('never')])).not.toContain('account')
  })

  it('is retried after webhook.fail(), and dead when it says not retryable', async () => {
    const receiver = receiverOf({
      store: memoryStore(),
      handler: (webhook) => webhook.fail(undefined, { retryable: webhook.attempt === 1 }),
    })
    expect(await receiver.receive(signed('{}'), undefined)).toMatchObject({
      status: 'failed',
      answer: { status: 503 },
    })
    expect(await receiver.receive(signed('{}'), undefined)).toMatchObject({
      status: 'dead',
      answer: { status: 422 },
    })
  })
})

describe('completion inside a transaction', () => {
  // A stand-in for a database: what was done in it counts only once it is committed.
  function transactional() {
    const inner = memoryStore()
    let pending: (() => Promise<unknown>) | undefined
    const store = withOperations(inner, {
      async complete(hold, options, tx) {
        if (tx === undefined) return inner.complete(hold, options)
        const record = await inner.get(hold.key)
        if (record?.state !== 'processing' || record.fence !== hold.fence) return 'lost'
        pending = () => inner.complete(hold, options)
        return 'ok'
      },
    })
    return { store, commit: async () => pending?.() }
  }

  it('is completed when the transaction committed', async () => {
    const { store, commit } = transactional()
    const receiver = receiverOf({ store })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    await receipt.webhook.completeIn({})
    await commit()
    expect(await receipt.settle({ status: 200 })).toEqual({ state: 'completed' })
  })

  it('is failed when the transaction was rolled back, whatever the handler answered', async () => {
    const { store } = transactional()
    const receiver = receiverOf({ store })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    await receipt.webhook.completeIn({})
    expect(await receipt.settle({ status: 200 })).toMatchObject({
      state: 'failed',
      replace: { status: 503 },
    })
    expect((await store.get(receipt.webhook.key))?.code).toBe('transaction_rolled_back')
  })

  it('answers 503 when nobody can say whether the transaction committed', async () => {
    const { store, commit } = transactional()
    const receiver = receiverOf({
      store: withOperations(store, { get: () => Promise.reject(storeUnavailable('down')) }),
    })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    await receipt.webhook.completeIn({})
    await commit()
    const settlement = await receipt.settle({ status: 200 })
    expect(settlement).toMatchObject({ state: 'processing', replace: { status: 503 } })
    // The sender asks again and learns the truth.
    expect((await receiver.receive(signed('{}'), undefined)).status).toBe('completed')
  })

  it('stays completed when the handler fails after the commit', async () => {
    const { store, commit } = transactional()
    const receiver = receiverOf({
      store,
      handler: async (webhook) => {
        await webhook.completeIn({})
        await commit()
        throw new Error('too late to matter')
      },
    })
    expect(await receiver.receive(signed('{}'), undefined)).toMatchObject({
      status: 'completed',
      answer: { status: 200 },
    })
  })

  it('throws when the claim was lost, so that the business change rolls back', async () => {
    const clock = { now: 1_000_000 }
    const inner = memoryStore({ now: () => clock.now })
    const store = withOperations(inner, {
      complete: (hold, options) => inner.complete(hold, options),
    })
    const receiver = receiverOf({ store })
    const first = claimedOf(await receiver.receive(signed('{}'), undefined))
    clock.now += 31_000
    claimedOf(await receiver.receive(signed('{}'), undefined))
    await expect(first.webhook.completeIn({})).rejects.toMatchObject({ code: 'ERR_CLAIM_LOST' })
    await expect(first.webhook.completeIn(undefined)).rejects.toMatchObject({
      code: 'ERR_TRANSACTION',
    })
  })
})

describe('drain', () => {
  it('waits for what runs', async () => {
    const hold = gate()
    const inbox = createInbox({ store: memoryStore() })
    const receiver = createReceiver({
      provider: 'github',
      secret,
      inbox,
      handler: () => hold.opened,
    })
    const answered = receiver.receive(signed('{}'), undefined)
    await Promise.resolve()
    const drained = inbox.drain({ timeoutMs: 5000 })
    hold.open()
    expect((await answered).status).toBe('completed')
    expect(await drained).toEqual({ drained: true, running: 0 })
  })

  it('aborts with the reason shutdown when time is up', async () => {
    const inbox = createInbox({ store: memoryStore() })
    const receiver = createReceiver({ provider: 'github', secret, inbox })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect(await inbox.drain({ timeoutMs: 30 })).toEqual({ drained: false, running: 1 })
    expect(receipt.webhook.signal.reason).toBe('shutdown')
  })
})

describe('a second middleware on a request', () => {
  it('runs under the claim of the first, and asks no store', async () => {
    const store = memoryStore()
    const first = receiverOf({ store })
    const outer = claimedOf(await first.receive(signed('{}'), undefined))
    const again = { ...signed('{}'), claimed: outer.webhook }
    const inner = claimedOf(await receiverOf({ store }).receive(again, undefined))
    expect(inner.webhook).toBe(outer.webhook)
    for (const [status, state] of [
      [200, 'completed'],
      [422, 'dead'],
      [500, 'failed'],
    ] as const)
      expect(await inner.settle({ status })).toEqual({ state })
    expect(await outer.settle({ status: 500 })).toEqual({ state: 'failed' })
    expect((await store.get(outer.webhook.key))?.state).toBe('failed')
  })

  it('runs its handler', async () => {
    const store = memoryStore()
    const outer = claimedOf(await receiverOf({ store }).receive(signed('{}'), undefined))
    const seen: unknown[] = []
    const inner = receiverOf({ store, handler: (webhook) => void seen.push(webhook) })
    const receipt = await inner.receive({ ...signed('{}'), claimed: outer.webhook }, undefined)
    expect(receipt).toMatchObject({ status: 'completed', answer: { status: 200 } })
    expect(seen).toEqual([outer.webhook])
  })

  it('verifies for itself, and believes no look-alike', async () => {
    const store = memoryStore()
    const outer = claimedOf(await receiverOf({ store }).receive(signed('{}'), undefined))
    const forged = { ...signed('{}', {}, 'another secret'), claimed: outer.webhook }
    const alike = { ...signed('{}'), claimed: { ...outer.webhook } }
    const receiver = receiverOf({ store })
    expect(await receiver.receive(forged, undefined)).toMatchObject({ code: 'signature_mismatch' })
    expect((await receiver.receive(alike, undefined)).status).toBe('processing')
  })

  it('claims for itself under another key, and is never content that somebody else has that', async () => {
    const store = memoryStore()
    const outer = claimedOf(await receiverOf({ store }).receive(signed('{}'), undefined))
    const other = receiverOf({ store, endpoint: 'other' })
    const again = { ...signed('{}'), claimed: outer.webhook }
    const inner = claimedOf(await other.receive(again, undefined))
    expect(inner.webhook.endpoint).toBe('other')
    expect(await other.receive(again, undefined)).toMatchObject({
      status: 'processing',
      answer: { status: 503 },
    })
  })
})

describe('a broken observer or hook', () => {
  it('changes nothing', async () => {
    const broken = () => {
      throw new Error('observer')
    }
    const receiver = receiverOf({
      store: memoryStore(),
      observer: broken,
      onError: () => Promise.reject(new Error('hook')),
      settleBy: () => {
        throw new Error('settleBy')
      },
    })
    const receipt = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect(await receipt.settle({ status: 201 })).toEqual({ state: 'completed' })
  })
})

describe('idempotencyKey', () => {
  it('is the same for every attempt and differs by purpose and delivery', async () => {
    const receiver = receiverOf({ store: memoryStore() })
    const first = claimedOf(await receiver.receive(signed('{}'), undefined))
    const key = first.webhook.idempotencyKey('charge')
    expect(key).toMatch(/^whi_[0-9a-f]{32}_charge$/)
    await first.settle({ status: 500 })
    const second = claimedOf(await receiver.receive(signed('{}'), undefined))
    expect(second.webhook.idempotencyKey('charge')).toBe(key)
    expect(second.webhook.idempotencyKey('mail')).not.toBe(key)
    const other = claimedOf(
      await receiver.receive(signed('{}', { 'x-github-delivery': 'other' }), undefined),
    )
    expect(other.webhook.idempotencyKey('charge')).not.toBe(key)
    expect(() => other.webhook.idempotencyKey('a b')).toThrow(/1 to 128 characters/)
  })
})
