import { grantOf, keyOf, present, type StoreGuarantee, tally } from './harness.ts'

/** Who gets a claim, and what the others learn. */
export const claimGuarantees = {
  async S1({ store, entry, record, expect }) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => store.claim([entry()])))
    const results = answers.map((answer) => present(answer[0], 'The result of a claim'))
    expect(tally(results.map(({ status }) => status))).toEqual({ claimed: 1, processing: 49 })
    const { state, attempt } = await record()
    expect({ state, attempt }).toEqual({ state: 'processing', attempt: 1 })
  },

  async S2({ store, second, entry, expect }) {
    const stores = [store, await second(), await second()]
    for (let round = 0; round < 10; round++) {
      const key = keyOf(`round-${round}`)
      const answers = await Promise.all(
        stores.flatMap((one) => Array.from({ length: 10 }, () => one.claim([entry({ key })]))),
      )
      expect(tally(answers.map((answer) => answer[0]?.status ?? 'nothing'))).toEqual({
        claimed: 1,
        processing: 29,
      })
    }
  },

  async S3({ grant, claim, advance, tickMs, expect }) {
    const first = await grant({ token: 'mine' })
    await advance(6)
    const again = await grant({ token: 'mine' })
    expect({ fence: again.fence, attempt: again.attempt, leaseMs: again.leaseMs }).toEqual({
      fence: first.fence,
      attempt: 1,
      leaseMs: 10 * tickMs,
    })
    await advance(6)
    expect((await claim()).status).toEqual('processing')
  },

  async S4({ grant, claim, advance, expect }) {
    const first = await grant({ token: 'mine' })
    await advance(15)
    const again = await grant({ token: 'mine' })
    expect({ fence: again.fence, attempt: again.attempt }).toEqual({
      fence: first.fence,
      attempt: 1,
    })
    expect((await claim()).status).toEqual('processing')
  },

  async S5({ grant, claim, advance, tickMs, expect }) {
    await grant()
    await advance(4)
    const other = await claim()
    if (other.status !== 'processing') throw new Error(`The store answered "${other.status}".`)
    expect(other.leaseMs > 0 && other.leaseMs <= 6 * tickMs).toEqual(true)
  },

  async S6({ store, entry, grant, advance, expect }) {
    const first = await grant()
    await advance(11)
    const entries = Array.from({ length: 20 }, () => entry())
    const answers = await Promise.all(entries.map((one) => store.claim([one])))
    const results = answers.map((answer) => present(answer[0], 'The result of a claim'))
    expect(tally(results.map(({ status }) => status))).toEqual({ claimed: 1, processing: 19 })
    for (const result of results) {
      if (result.status !== 'claimed') continue
      expect(result.attempt).toEqual(2)
      expect(result.fence > first.fence).toEqual(true)
    }
  },

  async S7({ store, grant, claim, advance, tickMs, expect }) {
    const { hold } = await grant()
    await advance(6)
    expect(await store.renew(hold, 10 * tickMs)).toEqual('ok')
    await advance(6)
    expect((await claim()).status).toEqual('processing')
    await advance(5)
    expect((await claim()).status).toEqual('claimed')
  },

  async S8({ store, grant, record, advance, tickMs, expect }) {
    const dead = await grant({ token: 'dead' })
    await advance(11)
    const alive = await grant({ token: 'alive' })
    const before = await record()
    const retentionMs = 100 * tickMs
    expect({
      renew: await store.renew(dead.hold, 10 * tickMs),
      complete: await store.complete(dead.hold, { retentionMs }),
      fail: await store.fail(dead.hold, { code: 'late', retentionMs, retryInMs: 0 }),
      dead: await store.fail(dead.hold, { code: 'late', retentionMs, dead: true }),
      release: await store.release(dead.hold),
    }).toEqual({ renew: 'lost', complete: 'lost', fail: 'lost', dead: 'lost', release: 'lost' })
    expect(await record()).toEqual(before)
    expect(await store.complete(alive.hold, { retentionMs })).toEqual('ok')
    expect(await store.complete(dead.hold, { retentionMs })).toEqual('lost')
    expect(await store.release(dead.hold)).toEqual('lost')
  },

  async S9({ store, grant, claim, advance, tickMs, expect }) {
    const retentionMs = 1000 * tickMs
    const late = async (deliveryId: string) => {
      const { hold } = await grant({ key: keyOf(deliveryId) })
      await advance(15)
      return hold
    }
    expect(await store.renew(await late('renewed'), 10 * tickMs)).toEqual('ok')
    expect((await claim({ key: keyOf('renewed') })).status).toEqual('processing')
    expect(await store.complete(await late('completed'), { retentionMs })).toEqual('ok')
    expect(
      await store.fail(await late('failed'), { code: 'slow', retentionMs, retryInMs: 0 }),
    ).toEqual('ok')
    expect(await store.release(await late('released'))).toEqual('ok')
  },

  async S10({ store, grant, record, tickMs, expect }) {
    const { hold } = await grant()
    const before = await record()
    const wrong = [
      { ...hold, token: 'another' },
      { ...hold, token: '' },
      { ...hold, fence: hold.fence + 1 },
      { ...hold, fence: hold.fence - 1 },
      { ...hold, fence: 0 },
      { ...hold, key: keyOf('unknown') },
    ]
    const retentionMs = 100 * tickMs
    const answers: string[] = []
    for (const one of wrong) {
      answers.push(await store.renew(one, 10 * tickMs))
      answers.push(await store.complete(one, { retentionMs }))
      answers.push(await store.fail(one, { code: 'x', retentionMs, retryInMs: 0 }))
      answers.push(await store.release(one))
    }
    expect(tally(answers)).toEqual({ lost: 24 })
    expect(await record()).toEqual(before)
  },

  async S11({ store, entry, grant, tickMs, expect }) {
    const done = await grant({ key: keyOf('done') })
    await store.complete(done.hold, { retentionMs: 100 * tickMs })
    const entries = [
      entry({ key: keyOf('a') }),
      entry({ key: keyOf('done') }),
      entry({ key: keyOf('b') }),
      entry({ key: keyOf('a') }),
      entry({ key: keyOf('c'), mode: 'queued', payload: { body: new Uint8Array(), headers: {} } }),
      entry({ key: keyOf('a') }),
    ]
    const results = await store.claim(entries)
    expect(results.length).toEqual(6)
    const statuses = results.map(({ status }) => status)
    expect([statuses[1], statuses[2], statuses[4]]).toEqual(['completed', 'claimed', 'pending'])
    expect(tally([statuses[0], statuses[3], statuses[5]].map(String))).toEqual({
      claimed: 1,
      processing: 2,
    })
  },

  async S12({ store, expect }) {
    expect(await store.claim([])).toEqual([])
  },

  async S13({ store, grant, advance, tickMs, expect }) {
    const fences: number[] = []
    for (let round = 0; round < 10; round++) {
      const { hold, fence } = await grant()
      fences.push(fence)
      if (round % 2 === 0) await advance(11)
      else await store.fail(hold, { code: 'x', retentionMs: 1000 * tickMs, retryInMs: 0 })
    }
    expect(fences.every((fence) => Number.isSafeInteger(fence) && fence > 0)).toEqual(true)
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
  },

  async S14({ store, grant, advance, tickMs, expect }) {
    const first = await grant({ token: 'same' })
    await store.complete(first.hold, { retentionMs: 5 * tickMs })
    await advance(6)
    await store.purge(10)
    expect(await store.get(first.hold.key)).toEqual(undefined)
    // Even with the token of before, the fence tells the holders apart.
    const next = await grant({ token: 'same' })
    expect(next.fence > first.fence).toEqual(true)
    expect(next.attempt).toEqual(1)
    expect(await store.complete(first.hold, { retentionMs: 5 * tickMs })).toEqual('lost')
    expect(await store.renew(first.hold, 10 * tickMs)).toEqual('lost')
  },

  async S15({ store, grant, record, advance, tickMs, expect }) {
    const first = await grant({ fingerprint: 'before' })
    await store.complete(first.hold, {
      retentionMs: 5 * tickMs,
      result: new Uint8Array([1]),
    })
    await advance(6)
    const next = await grant({ fingerprint: 'after' })
    expect(next.attempt).toEqual(1)
    expect(next.fence > first.fence).toEqual(true)
    const { state, fingerprint } = await record()
    expect({ state, fingerprint }).toEqual({ state: 'processing', fingerprint: 'after' })
    expect(await store.complete(first.hold, { retentionMs: 5 * tickMs })).toEqual('lost')
  },

  async S63({ store, entry, expect }) {
    const entries = Array.from({ length: 200 }, (_, index) =>
      entry({ key: keyOf(`d-${index % 100}`) }),
    )
    const results = await store.claim(entries)
    expect(tally(results.map(({ status }) => status))).toEqual({ claimed: 100, processing: 100 })
    const granted = entries.filter((_, index) => results[index]?.status === 'claimed')
    expect(new Set(granted.map(({ key }) => key.deliveryId)).size).toEqual(100)
    for (const [index, result] of results.entries()) {
      if (result.status !== 'claimed') continue
      const { hold } = grantOf(present(entries[index], 'The entry'), result)
      expect(await store.release(hold)).toEqual('ok')
    }
  },
} as const satisfies Record<string, StoreGuarantee>
