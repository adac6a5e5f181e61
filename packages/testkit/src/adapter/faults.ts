import { storeUnavailable } from '@webhook-inbox/core'
import { type AdapterGuarantee, buildRequest, keyOf, secret } from './harness.ts'
import { createGate } from './observed-store.ts'

const takeover = {
  key: keyOf(),
  token: 'token-of-another',
  leaseMs: 1_000_000,
  mode: 'inline',
  unfinishedRetentionMs: 1_000_000,
} as const

/** Slow stores, broken stores, lost leases, long runs, and what is told of them. */
export const faultGuarantees = {
  async A40({ serve, expect }) {
    const gate = createGate()
    const site = await serve({ policy: { storeTimeoutMs: 60_000 } })
    site.observed.intercept('complete', async (go) => {
      await gate.opened
      return go()
    })
    let answered = false
    const reply = site.send().then((answer) => {
      answered = true
      return answer
    })
    await site.observed.called('complete')
    // Copies make the whole way meanwhile: the first answer had time enough to leave.
    for (let copy = 0; copy < 10; copy++) {
      expect((await site.send()).status).toEqual(202)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    expect(answered).toEqual(false)
    gate.open()
    expect((await reply).state).toEqual('completed')
  },

  async A42({ serve, expect }) {
    const site = await serve()
    const failures = [
      storeUnavailable('the store is down'),
      new Error('a driver that knows nothing of our errors'),
    ]
    for (const failure of failures) {
      site.observed.intercept('claim', async () => {
        throw failure
      })
      const reply = await site.send()
      expect({
        status: reply.status,
        state: reply.state,
        wait: Number(reply.headers.get('retry-after')) >= 1,
        type: reply.headers.get('content-type'),
      }).toEqual({ status: 503, state: 'refused', wait: true, type: 'application/problem+json' })
    }
    expect(site.runs.length).toEqual(0)
    expect(site.errors.includes(failures[0]) && site.errors.includes(failures[1])).toEqual(true)
    site.observed.intercept('claim', undefined)
    expect((await site.send()).state).toEqual('completed')
  },

  async A43({ serve, expect }) {
    const site = await serve({ policy: { storeTimeoutMs: 50, leaseMs: 60_000 } })
    const gate = createGate()
    site.observed.intercept('claim', async (go) => {
      await gate.opened
      return go()
    })
    const reply = await site.send()
    expect({
      status: reply.status,
      state: reply.state,
      wait: Number(reply.headers.get('retry-after')) >= 1,
    }).toEqual({ status: 503, state: 'refused', wait: true })
    await site.observed.called('abandon')
    site.observed.intercept('claim', undefined)
    // The claim arrives after all, and is given back once more.
    gate.open()
    await site.observed.called('abandon', 2)
    expect(site.runs.length).toEqual(0)
    expect((await site.send()).state).toEqual('completed')
    expect(site.runs.map(({ attempt }) => attempt)).toEqual([1])
  },

  async A44({ serve, expect }) {
    const site = await serve({ policy: { leaseMs: 60_000 } })
    site.observed.intercept('complete', async () => {
      throw storeUnavailable('the store is down')
    })
    const reply = await site.send()
    expect({ status: reply.status, state: reply.state }).toEqual({
      status: 200,
      state: 'processing',
    })
    expect((await site.send()).state).toEqual('processing')
    const record = await site.observed.store.get(keyOf())
    expect(record?.state).toEqual('processing')
    site.observed.intercept('complete', undefined)
    await site.event('settle_recovered')
    const copy = await site.send()
    expect({ status: copy.status, state: copy.state }).toEqual({ status: 200, state: 'completed' })
    expect(site.runs.length).toEqual(1)
  },

  async A45({ serve, expect }) {
    for (const otherCompletes of [true, false]) {
      const id = otherCompletes ? 'completed by another' : 'held by another'
      const deliveryId = id.replaceAll(' ', '-')
      const key = keyOf(deliveryId)
      const site = await serve({
        async run() {
          await site.advance(31_000)
          const [claim] = await site.observed.store.claim([{ ...takeover, key }])
          if (claim?.status !== 'claimed') throw new Error('The claim had to be granted.')
          const hold = { key, token: takeover.token, fence: claim.fence }
          if (otherCompletes) await site.observed.store.complete(hold, { retentionMs: 1_000_000 })
        },
      })
      const reply = await site.send({ id: deliveryId })
      expect({ id, status: reply.status, state: reply.state }).toEqual(
        otherCompletes
          ? { id, status: 200, state: 'completed' }
          : { id, status: 503, state: 'lost' },
      )
    }
  },

  async A46({ serve, expect }) {
    const gate = createGate()
    const site = await serve({ policy: { leaseMs: 90 }, run: () => gate.opened })
    const reply = site.send()
    await site.observed.called('claim')
    for (let round = 1; round <= 6; round++) {
      // Two thirds of a lease go by in each round; without renewals it would have ended twice by now.
      // The renewal waited for is the one after the clock moved: on a slow machine older ones are past.
      const renewals = site.observed.calls.filter((call) => call === 'renew').length
      await site.advance(60)
      await site.observed.called('renew', renewals + 1)
      expect((await site.send()).status).toEqual(202)
    }
    expect(site.runs[0]?.signal.aborted).toEqual(false)
    gate.open()
    expect((await reply).state).toEqual('completed')
    expect(site.runs.length).toEqual(1)
  },

  async A47({ serve, expect }) {
    const reasons: unknown[] = []
    const site = await serve({
      policy: { leaseMs: 90 },
      async run({ signal }) {
        await site.advance(100)
        await site.observed.store.claim([takeover])
        await new Promise<void>((resolve) => {
          if (signal.aborted) resolve()
          else signal.addEventListener('abort', () => resolve())
        })
        reasons.push(signal.reason)
      },
    })
    const reply = await site.send()
    expect(reasons).toEqual(['lease_lost'])
    expect({ status: reply.status, state: reply.state }).toEqual({ status: 503, state: 'lost' })
    expect((await site.observed.store.get(keyOf()))?.attempt).toEqual(2)
  },

  async A48({ serve, expect }) {
    const gate = createGate()
    const site = await serve({
      policy: { maxRunMs: 50 },
      async run() {
        if (site.runs.length === 1) await gate.opened
      },
    })
    const reply = await site.send()
    expect({
      status: reply.status,
      state: reply.state,
      reason: site.runs[0]?.signal.reason,
      wait: Number(reply.headers.get('retry-after')) >= 1,
    }).toEqual({ status: 503, state: 'failed', reason: 'timeout', wait: true })
    expect((await site.observed.store.get(keyOf()))?.code).toEqual('run_timeout')
    expect((await site.send()).state).toEqual('completed')
    // The first run ends after all, and changes nothing.
    gate.open()
    expect((await site.send()).state).toEqual('completed')
    expect(site.runs.length).toEqual(2)
  },

  async A52({ serve, expect }) {
    const canary = 'canary-5d21'
    const told: string[] = []
    const site = await serve({
      async run({ id }) {
        if (id === 'throws') throw new Error('the handler broke')
      },
      options: { events: ['push'] },
      policy: { storeTimeoutMs: 50 },
    })
    const payload = { note: canary }
    const good = await buildRequest(site.url, { payload })
    const signature = good.headers.get('x-hub-signature-256') ?? ''
    const sends = [
      { id: 'runs' },
      { id: 'runs' },
      { id: 'throws' },
      { id: 'ignored', event: 'star' },
      { id: 'forged', headers: { 'x-hub-signature-256': signature.replace(/.$/, 'x') } },
      { id: 'other secret', secret: canary },
      { id: 'no hook', hookId: canary },
    ]
    for (const send of sends) {
      const reply = await site.send({ payload, ...send })
      told.push(reply.text, JSON.stringify([...reply.headers]))
    }
    site.observed.intercept('claim', async () => {
      throw storeUnavailable('the store is down')
    })
    const down = await site.send({ id: 'down', payload })
    told.push(down.text, JSON.stringify([...down.headers]))
    told.push(JSON.stringify(site.events))
    for (const error of site.errors) told.push(String(error), JSON.stringify(error) ?? '')
    const everything = told.join('\n')
    const digest = signature.slice('sha256='.length)
    expect({
      secret: everything.includes(secret),
      signature: everything.includes(digest) || everything.includes(digest.slice(0, -1)),
      payload: everything.includes(canary),
      heard: site.events.length > 5,
    }).toEqual({ secret: false, signature: false, payload: false, heard: true })
  },
} as const satisfies Record<string, AdapterGuarantee>
