import { hex, keyOf, payloadOf, present, type StoreGuarantee, tally } from './harness.ts'

const failing = { code: 'x', retentionMs: 1_000_000 } as const

/** Lines, the newest of an entity, and what a record remembers of its attempts. */
export const orderGuarantees = {
  async S67({ store, enqueue, take, tickMs, expect }) {
    const line = (id: string, order: string) => enqueue({ key: keyOf(id), order })
    await line('a1', 'a')
    await line('b1', 'b')
    await line('a2', 'a')
    await enqueue({ key: keyOf('free') })
    await line('a3', 'a')
    await line('b2', 'b')
    const ids: string[][] = []
    for (let round = 0; round < 4; round++) {
      const taken = await take()
      ids.push(taken.map(({ hold }) => hold.key.deliveryId).sort())
      // Only the heads are in hand: asking once more brings nothing.
      expect((await take()).length).toEqual(0)
      for (const { hold } of taken)
        expect(await store.complete(hold, { retentionMs: 100 * tickMs })).toEqual('ok')
    }
    expect(ids).toEqual([['a1', 'b1', 'free'], ['a2', 'b2'], ['a3'], []])
  },

  async S68({ store, enqueue, take, advance, tickMs, expect }) {
    const idsOf = async () => {
      const taken = await take({ maxAttempts: 3 })
      return taken.map(({ hold }) => [hold.key.deliveryId, hold] as const)
    }
    await enqueue({ key: keyOf('first'), order: 'line' })
    await enqueue({ key: keyOf('second'), order: 'line' })
    const [one] = await idsOf()
    const [, hold] = present(one, 'The head')
    await store.fail(hold, { ...failing, retryInMs: 5 * tickMs })
    expect(await idsOf()).toEqual([])
    await advance(6)
    const [again] = await idsOf()
    const [id, second] = present(again, 'The head')
    expect(id).toEqual('first')
    expect(await store.release(second)).toEqual('ok')
    const [released] = await idsOf()
    expect(present(released, 'The head')[0]).toEqual('first')
    // Its owner is lost: the lease alone holds the line.
    expect(await idsOf()).toEqual([])
    await advance(11)
    const [third] = await idsOf()
    expect(present(third, 'The head')[0]).toEqual('first')
    await store.fail(present(third, 'The head')[1], { ...failing, dead: true })
    expect((await idsOf()).map(([name]) => name)).toEqual(['second'])
    // The limit of attempts ends a head as well.
    await enqueue({ key: keyOf('third'), order: 'line' })
    for (let attempt = 1; attempt < 3; attempt++) {
      await advance(11)
      expect((await idsOf()).map(([name]) => name)).toEqual(['second'])
    }
    await advance(11)
    const rest = [...(await idsOf()), ...(await idsOf())]
    expect(rest.map(([name]) => name)).toEqual(['third'])
  },

  async S69({ store, enqueue, take, tickMs, expect }) {
    for (const id of ['first', 'second', 'third']) await enqueue({ key: keyOf(id), order: 'line' })
    const takeOne = async () => present((await take())[0], 'The head').hold
    await store.fail(await takeOne(), { ...failing, dead: true })
    const running = await takeOne()
    expect(running.key.deliveryId).toEqual('second')
    expect(await store.retry(keyOf('first'))).toEqual('pending')
    // It is the head again, and its successor still runs.
    expect((await take()).length).toEqual(0)
    await store.complete(running, { retentionMs: 100 * tickMs })
    const retried = await takeOne()
    expect(retried.key.deliveryId).toEqual('first')
    expect((await take()).length).toEqual(0)
    await store.complete(retried, { retentionMs: 100 * tickMs })
    expect((await takeOne()).key.deliveryId).toEqual('third')
  },

  async S70({ store, enqueue, take, tickMs, expect }) {
    await enqueue({ key: keyOf('first'), order: 'line' })
    await enqueue({ key: keyOf('second'), order: 'line' })
    await enqueue({ key: keyOf('other'), order: 'other line' })
    const first = await take({ deadBlocksOrder: true })
    const head = present(
      first.find(({ hold }) => hold.key.deliveryId === 'first'),
      'The head',
    )
    await store.fail(head.hold, { ...failing, dead: true })
    expect((await take({ deadBlocksOrder: true })).length).toEqual(0)
    expect(await store.retry(keyOf('first'))).toEqual('pending')
    const [retried] = await take({ deadBlocksOrder: true })
    expect(present(retried, 'The head').hold.key.deliveryId).toEqual('first')
    await store.complete(present(retried, 'The head').hold, { retentionMs: 100 * tickMs })
    const [next] = await take({ deadBlocksOrder: true })
    expect(present(next, 'The next').hold.key.deliveryId).toEqual('second')
  },

  async S71({ store, claim, grant, enqueue, take, record, advance, tickMs, expect }) {
    await enqueue({ order: 'line' })
    const told = { status: 'pending', fresh: false, fingerprintMatches: true }
    expect(await claim()).toEqual(told)
    const { hold } = present((await take())[0], 'The head')
    expect((await claim()).status).toEqual('processing')
    await store.fail(hold, { ...failing, retryInMs: 50 * tickMs })
    expect(await claim()).toEqual(told)
    expect((await record()).attempt).toEqual(1)
    // A copy that brings the bytes to an inline claim brings its place in the line as well.
    const inline = await grant({ key: keyOf('inline') })
    const copy = await claim({
      key: keyOf('inline'),
      mode: 'queued',
      payload: payloadOf('{}'),
      order: 'other',
    })
    expect(copy.status).toEqual('processing')
    await enqueue({ key: keyOf('after'), order: 'other' })
    expect((await take()).length).toEqual(0)
    await store.complete(inline.hold, { retentionMs: 100 * tickMs })
    expect((await take()).map(({ hold: { key } }) => key.deliveryId)).toEqual(['after'])
    await advance(51)
    expect((await take()).map(({ hold: { key } }) => key.deliveryId).includes('d-1')).toEqual(true)
  },

  async S72({ store, entry, take, tickMs, expect }) {
    const lines = 8
    const each = 4
    await store.claim(
      Array.from({ length: lines * each }, (_, index) =>
        entry({
          key: keyOf(`${Math.floor(index / lines)} of ${index % lines}`),
          mode: 'queued',
          payload: payloadOf('{}'),
          order: `line ${index % lines}`,
        }),
      ),
    )
    const seen: string[] = []
    for (let round = 0; round < each; round++) {
      const hauls = (await Promise.all(Array.from({ length: 6 }, () => take({ limit: 3 })))).flat()
      for (let rest = await take(); rest.length > 0; rest = await take()) hauls.push(...rest)
      const ids = hauls.map(({ hold }) => hold.key.deliveryId)
      expect(tally(ids.map((id) => id.split(' of ')[1] ?? ''))).toEqual(
        Object.fromEntries(Array.from({ length: lines }, (_, line) => [String(line), 1])),
      )
      seen.push(...ids.map((id) => id.split(' of ')[0] ?? ''))
      await Promise.all(
        hauls.map(({ hold }) => store.complete(hold, { retentionMs: 100 * tickMs })),
      )
    }
    expect(seen).toEqual(
      Array.from({ length: lines * each }, (_, index) => String(Math.floor(index / lines))),
    )
  },

  async S73({ store, enqueue, take, record, advance, expect }) {
    await enqueue()
    for (let attempt = 1; attempt <= 12; attempt++) {
      const { hold } = present((await take())[0], 'The taken delivery')
      if (attempt === 11) await advance(11)
      else
        await store.fail(hold, {
          ...failing,
          code: `code_${attempt}`,
          durationMs: attempt,
          retryInMs: 0,
        })
      await advance(1)
    }
    const { attempts, createdAt } = await record()
    const kept = present(attempts, 'The attempts')
    expect(kept.map(({ attempt, code, durationMs }) => [attempt, code, durationMs])).toEqual([
      ...Array.from({ length: 8 }, (_, index) => [index + 3, `code_${index + 3}`, index + 3]),
      [11, 'lease_expired', undefined],
      [12, 'code_12', 12],
    ])
    const times = kept.map(({ endedAt }) => endedAt.getTime())
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    expect((times[0] ?? 0) > createdAt.getTime()).toEqual(true)
    const { hold } = present((await take())[0], 'The taken delivery')
    await store.fail(hold, { ...failing, code: 'last', dead: true })
    expect((await record()).attempts?.at(-1)?.code).toEqual('last')
  },

  async S74({ store, enqueue, grant, take, advance, expect }) {
    await enqueue()
    const lostOwners = async () => {
      const taken = present((await take())[0], 'The taken delivery')
      return [taken.lostOwners, taken.hold] as const
    }
    expect((await lostOwners())[0]).toEqual(0)
    await advance(11)
    expect((await lostOwners())[0]).toEqual(1)
    await advance(11)
    // An inline claim is an owner like any other.
    await grant()
    await advance(11)
    const [lost, hold] = await lostOwners()
    expect(lost).toEqual(3)
    await store.release(hold)
    const [released, again] = await lostOwners()
    expect(released).toEqual(3)
    await store.fail(again, { ...failing, retryInMs: 0 })
    expect((await lostOwners())[0]).toEqual(0)
  },

  async S75({ store, advance, tickMs, expect }) {
    const latest = (entity: string, occurredAtMs: number) =>
      store.latest({ entity, occurredAtMs, retentionMs: 20 * tickMs })
    expect(await latest('order:1', 1000)).toEqual(true)
    expect(await latest('order:1', 999)).toEqual(false)
    expect(await latest('order:1', 1000)).toEqual(true)
    expect(await latest('order:2', 1)).toEqual(true)
    expect(await latest('ORDER:1', -5)).toEqual(true)
    expect(await latest('漢'.repeat(255), 8_640_000_000_000_000)).toEqual(true)
    expect(await latest('漢'.repeat(255), 8_639_999_999_999_999)).toEqual(false)
    // Of many at the same moment the newest is what is remembered.
    await Promise.all(
      Array.from({ length: 40 }, (_, index) => latest('order:3', 100 + ((index * 17) % 40))),
    )
    expect([await latest('order:3', 138), await latest('order:3', 139)]).toEqual([false, true])
    await advance(21)
    await store.purge(10)
    expect(await latest('order:1', 1)).toEqual(true)
  },

  async S76({ store, transaction, tickMs, expect }) {
    const latest = (occurredAtMs: number, tx?: unknown) =>
      store.latest({ entity: 'order:1', occurredAtMs, retentionMs: 100 * tickMs }, tx)
    const answers: boolean[] = []
    await transaction(async (tx) => void answers.push(await latest(1000, tx)))
    await transaction(async (tx) => void answers.push(await latest(999, tx)))
    const undo = new Error('undo')
    const rolledBack = await transaction(async (tx) => {
      answers.push(await latest(2000, tx))
      throw undo
    }).catch((error: unknown) => error)
    expect(rolledBack === undo).toEqual(true)
    answers.push(await latest(1500), await latest(1499))
    expect(answers).toEqual([true, false, true, true, false])
  },

  async S77({ store, enqueue, grant, expect }) {
    let calls = 0
    let heard = (): void => {}
    const watch = await present(
      store.watch,
      'The operation "watch"',
    )(() => {
      calls += 1
      heard()
    })
    const next = (): Promise<void> =>
      new Promise((resolve) => {
        heard = resolve
      })
    const stored = next()
    await enqueue({ key: keyOf('stored') })
    await stored
    const { hold } = await grant({ key: keyOf('released') })
    await store.fail(hold, { ...failing, dead: true, payload: payloadOf('{}') })
    const retried = next()
    expect(await store.retry(hold.key)).toEqual('pending')
    await retried
    await watch.close()
    await watch.close()
    const before = calls
    await enqueue({ key: keyOf('unheard') })
    expect(calls).toEqual(before)
  },

  async S78({ store, enqueue, take, transaction, tickMs, expect }) {
    for (const id of ['first', 'second']) await enqueue({ key: keyOf(id), order: 'line' })
    const { hold } = present((await take())[0], 'The head')
    const settled = { retentionMs: 100 * tickMs }
    const undo = new Error('undo')
    await transaction(async (tx) => {
      await store.complete(hold, settled, tx)
      throw undo
    }).catch(() => {})
    expect((await take()).length).toEqual(0)
    await transaction(async (tx) => void (await store.complete(hold, settled, tx)))
    const [next] = await take()
    expect(present(next, 'The next').hold.key.deliveryId).toEqual('second')
  },

  async S79({ store, enqueue, grant, take, record, expect }) {
    // Sealed bytes are bytes like any other, and so is the name of their header.
    const body = Uint8Array.from({ length: 64 }, (_, index) => 255 - index)
    await enqueue({ payload: { body, headers: { ':sealed': 'key-1' } }, order: 'line' })
    const { payload, hold } = present((await take())[0], 'The taken delivery')
    expect([hex(payload.body), payload.headers]).toEqual([hex(body), { ':sealed': 'key-1' }])
    await store.release(hold)
    expect((await record()).state).toEqual('pending')
    expect((await grant({ key: keyOf('apart') })).attempt).toEqual(1)
  },
} as const satisfies Record<string, StoreGuarantee>
