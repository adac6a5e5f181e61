import { PermanentError } from '@webhook-inbox/core'
import { type AdapterGuarantee, keyOf, sharedInbox } from './harness.ts'
import { createGate } from './observed-store.ts'

/** What becomes of a delivery that comes again. */
export const copyGuarantees = {
  async A19({ serve, expect }) {
    const site = await serve()
    expect((await site.send()).state).toEqual('completed')
    for (let copy = 0; copy < 3; copy++) {
      const reply = await site.send()
      expect({
        status: reply.status,
        type: reply.headers.get('content-type'),
        state: reply.state,
        body: JSON.parse(reply.text),
      }).toEqual({
        status: 200,
        type: 'application/json',
        state: 'completed',
        body: { status: 'completed', deliveryId: 'd-1' },
      })
    }
    expect(site.runs.length).toEqual(1)
  },

  async A20({ serve, expect }) {
    const gate = createGate()
    const site = await serve({ run: () => gate.opened })
    const replies = Promise.all(Array.from({ length: 50 }, () => site.send()))
    // The run waits until every copy has asked, so that all are in flight at once.
    await site.observed.called('claim', 50)
    gate.open()
    const answers = await replies
    expect(site.runs.length).toEqual(1)
    const own = answers.filter(({ state }) => state === 'completed')
    const others = answers.filter(({ state }) => state !== 'completed')
    expect(own.length >= 1 && own.every(({ status }) => status === 200)).toEqual(true)
    expect(others.every(({ status, state }) => status === 202 && state === 'processing')).toEqual(
      true,
    )
    expect((await site.send()).status).toEqual(200)
    expect(site.runs.length).toEqual(1)
  },

  async A21({ serve, expect }) {
    const gate = createGate()
    const site = await serve({
      run: () => gate.opened,
      options: { inFlight: 'retry' },
      policy: { leaseMs: 20_000 },
    })
    const first = site.send()
    await site.observed.called('claim')
    const copy = await site.send()
    const wait = Number(copy.headers.get('retry-after'))
    expect({
      status: copy.status,
      state: copy.state,
      type: copy.headers.get('content-type'),
      wait: wait >= 1 && wait <= 20,
    }).toEqual({
      status: 503,
      state: 'processing',
      type: 'application/problem+json',
      wait: true,
    })
    gate.open()
    expect((await first).status).toEqual(200)
    expect(site.runs.length).toEqual(1)
  },

  async A22({ serve, expect }) {
    const site = await serve()
    expect((await site.send({ hookId: '1' })).state).toEqual('completed')
    expect((await site.send({ hookId: '2' })).state).toEqual('completed')
    expect((await site.send({ hookId: '' })).state).toEqual('completed')
    expect(site.runs.map(({ endpoint }) => endpoint)).toEqual(['1', '2', ''])
    await site.send({ hookId: '2' })
    expect(site.runs.length).toEqual(3)
  },

  async A23({ serve, expect }) {
    const billing = await serve({ options: { endpoint: 'billing' } })
    const support = await serve({ options: { endpoint: 'support' } })
    expect((await billing.send()).state).toEqual('completed')
    expect((await support.send()).state).toEqual('completed')
    // A fixed endpoint takes the place of the hook id.
    await support.send({ hookId: '2' })
    expect([billing.runs.length, support.runs.length]).toEqual([1, 1])
    expect(support.runs[0]?.endpoint).toEqual('support')
  },

  async A24({ serve, expect }) {
    let healthy = false
    const site = await serve({
      async run() {
        if (!healthy) throw new Error('not yet')
      },
    })
    const first = await site.send()
    expect({ failed: first.status >= 500, state: first.state }).toEqual({
      failed: true,
      state: 'failed',
    })
    expect((await site.send()).state).toEqual('failed')
    healthy = true
    expect((await site.send()).state).toEqual('completed')
    expect(site.runs.map(({ attempt }) => attempt)).toEqual([1, 2, 3])
    const fences = site.runs.map(({ fence }) => fence)
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
  },

  async A25({ serve, expect }) {
    let healthy = false
    const site = await serve({
      policy: { retry: { inlineBackoffMs: 30_000 } },
      async run() {
        if (!healthy) throw new Error('not yet')
      },
    })
    await site.send()
    healthy = true
    const early = await site.send()
    const wait = Number(early.headers.get('retry-after'))
    expect({
      status: early.status,
      state: early.state,
      wait: wait >= 1 && wait <= 30,
    }).toEqual({ status: 503, state: 'waiting', wait: true })
    expect(site.runs.length).toEqual(1)
    await site.advance(30_001)
    expect((await site.send()).state).toEqual('completed')
    expect(site.runs.length).toEqual(2)
  },

  async A26({ serve, expect }) {
    let healthy = false
    const run = async (): Promise<undefined> => {
      if (!healthy) throw new PermanentError('never')
    }
    const site = await serve({ run })
    await site.send()
    healthy = true
    for (let copy = 0; copy < 2; copy++) {
      const reply = await site.send()
      expect({
        status: reply.status,
        state: reply.state,
        body: JSON.parse(reply.text),
      }).toEqual({ status: 202, state: 'dead', body: { status: 'dead', deliveryId: 'd-1' } })
    }
    expect(site.runs.length).toEqual(1)

    const lenient = await serve({ run, options: { redeliverDead: true } })
    expect((await lenient.send()).state).toEqual('completed')
    expect(lenient.runs.map(({ attempt }) => attempt)).toEqual([1])
  },

  async A27({ serve, expect }) {
    const site = await serve({
      policy: { retry: { maxAttempts: 2 } },
      async run() {
        throw new Error('again and again')
      },
    })
    expect((await site.send()).state).toEqual('failed')
    expect((await site.send()).state).toEqual('dead')
    const copy = await site.send()
    expect({ status: copy.status, state: copy.state }).toEqual({ status: 202, state: 'dead' })
    expect(site.runs.length).toEqual(2)
  },

  async A28({ serve, expect }) {
    const site = await serve({ options: { replayGuard: true } })
    const payload = { ref: 'refs/heads/captured' }
    expect((await site.send({ id: 'true', payload })).state).toEqual('completed')
    expect((await site.send({ id: 'replayed', payload })).status).toEqual(200)
    expect((await site.send({ id: 'replayed', hookId: '2', payload })).status).toEqual(200)
    expect(site.runs.length).toEqual(1)
    await site.send({ id: 'true', payload: { ref: 'refs/heads/other' } })
    expect(site.runs.map(({ id }) => id)).toEqual(['true', 'true'])
  },

  async A29({ serve, expect }) {
    const site = await serve()
    const { store } = site.observed
    const entry = {
      key: keyOf(),
      token: 'token-of-the-dead',
      leaseMs: 5000,
      mode: 'inline',
      unfinishedRetentionMs: 1_000_000,
    } as const
    const [claim] = await store.claim([entry])
    if (claim?.status !== 'claimed') throw new Error('The claim had to be granted.')
    const early = await site.send()
    expect({ status: early.status, state: early.state }).toEqual({
      status: 202,
      state: 'processing',
    })
    await site.advance(4000)
    expect((await site.send()).status).toEqual(202)
    expect(site.runs.length).toEqual(0)

    await site.advance(1100)
    const replies = await Promise.all(Array.from({ length: 10 }, () => site.send()))
    expect(replies.every(({ status }) => status === 200 || status === 202)).toEqual(true)
    expect(site.runs.map(({ attempt }) => attempt)).toEqual([2])
    const fence = site.runs[0]?.fence ?? 0
    expect(fence > claim.fence).toEqual(true)
    const dead = { key: keyOf(), token: entry.token, fence: claim.fence }
    expect(await store.complete(dead, { retentionMs: 1000 })).toEqual('lost')
  },

  async A53({ serve, expect }) {
    const gate = createGate()
    const { observed } = await serve()
    const inbox = sharedInbox({ observed })
    const one = await serve({ inbox, options: { endpoint: 'one' }, run: () => gate.opened })
    const two = await serve({ inbox, options: { endpoint: 'two' } })
    const running = one.send()
    await observed.called('claim')
    expect((await two.send()).state).toEqual('completed')
    const busy = await inbox.drain({ timeoutMs: 1 })
    expect(busy).toEqual({ drained: false, running: 1 })
    expect(one.runs[0]?.signal.reason).toEqual('shutdown')
    const drained = inbox.drain({ timeoutMs: 10_000 })
    gate.open()
    expect(await drained).toEqual({ drained: true, running: 0 })
    expect((await running).state).toEqual('completed')
    expect([one.runs.length, two.runs.length]).toEqual([1, 1])
  },
} as const satisfies Record<string, AdapterGuarantee>
