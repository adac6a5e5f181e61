import { keyOf, payloadOf, type StoreGuarantee } from './harness.ts'

/** How long records are kept. */
export const retentionGuarantees = {
  async S28({ store, grant, record, advance, expect }) {
    const first = await grant()
    await advance(100)
    expect(await store.purge(10)).toEqual(0)
    const { state, abandoned, attempt, fence } = await record()
    expect({ state, abandoned, attempt, fence }).toEqual({
      state: 'processing',
      abandoned: true,
      attempt: 1,
      fence: first.fence,
    })
    expect((await grant()).attempt).toEqual(2)
  },

  async S29({ store, grant, claim, advance, tickMs, expect }) {
    const { hold } = await grant()
    await store.complete(hold, { retentionMs: 100 * tickMs })
    await advance(90)
    expect(await store.purge(10)).toEqual(0)
    expect((await claim()).status).toEqual('completed')
    await advance(11)
    // A store may also let go of it by itself.
    expect((await store.purge(10)) <= 1).toEqual(true)
    expect(await store.get(hold.key)).toEqual(undefined)
  },

  async S30({ store, grant, advance, tickMs, expect }) {
    const dead = await grant({ key: keyOf('dead') })
    await store.fail(dead.hold, { code: 'x', retentionMs: 30 * tickMs, dead: true })
    const failed = await grant({ key: keyOf('failed') })
    await store.fail(failed.hold, { code: 'x', retentionMs: 60 * tickMs, retryInMs: 0 })
    await grant({ key: keyOf('abandoned'), unfinishedRetentionMs: 90 * tickMs })
    const left = async () => {
      await store.purge(10)
      const { records } = await store.list()
      return records.map(({ key }) => key.deliveryId).sort()
    }
    expect(await left()).toEqual(['abandoned', 'dead', 'failed'])
    await advance(31)
    expect(await left()).toEqual(['abandoned', 'failed'])
    await advance(30)
    expect(await left()).toEqual(['abandoned'])
    await advance(30)
    expect(await left()).toEqual([])
  },

  async S31({ store, entry, advance, tickMs, expect }) {
    const entries = Array.from({ length: 25 }, (_, index) => entry({ key: keyOf(`d-${index}`) }))
    const results = await store.claim(entries)
    for (const [index, { key, token }] of entries.entries()) {
      const result = results[index]
      if (result?.status !== 'claimed') throw new Error('The claim had to be granted.')
      await store.complete({ key, token, fence: result.fence }, { retentionMs: 5 * tickMs })
    }
    await advance(6)
    const counts = [await store.purge(10), await store.purge(10), await store.purge(10)]
    // A store whose records expire by themselves has nothing to purge.
    if (counts[0] !== 0) expect(counts).toEqual([10, 10, 5])
    expect(await store.purge(10)).toEqual(0)
    for (const { key } of entries) expect(await store.get(key)).toEqual(undefined)
  },

  async S32({ store, grant, enqueue, claim, advance, tickMs, expect }) {
    const unfinishedRetentionMs = 2 * tickMs
    await enqueue({ key: keyOf('pending'), unfinishedRetentionMs })
    const failed = await grant({ key: keyOf('failed'), unfinishedRetentionMs })
    await store.fail(failed.hold, {
      code: 'x',
      retentionMs: 2 * tickMs,
      retryInMs: 0,
      payload: payloadOf('{}'),
    })
    await grant({ key: keyOf('abandoned'), unfinishedRetentionMs })
    await claim({
      key: keyOf('abandoned'),
      mode: 'queued',
      payload: payloadOf('{}'),
      unfinishedRetentionMs,
    })
    const live = { key: keyOf('live'), unfinishedRetentionMs, leaseMs: 500 * tickMs }
    const { hold } = await grant(live)
    await advance(200)
    expect(await store.purge(10)).toEqual(0)
    expect((await claim(live)).status).toEqual('processing')
    const { records } = await store.list()
    expect(records.map(({ key }) => key.deliveryId).sort()).toEqual([
      'abandoned',
      'failed',
      'live',
      'pending',
    ])
    expect(await store.complete(hold, { retentionMs: tickMs })).toEqual('ok')
  },
} as const satisfies Record<string, StoreGuarantee>
