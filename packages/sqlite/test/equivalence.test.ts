import {
  type ClaimEntry,
  type Hold,
  memoryStore,
  type Store,
  type StoredPayload,
  type TakenDelivery,
} from '@webhook-inbox/core'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { expect, it } from 'vitest'
import { keyOf } from './support.ts'

/** A repeatable source of whole numbers from 0 to below `limit`. */
function dice(seed: number): (limit: number) => number {
  let state = seed
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 2 ** 32) * limit)
  }
}

const startMs = 1_800_000_000_000

function pair(): {
  readonly both: <T>(call: (store: Store) => Promise<T>) => Promise<readonly [T, T]>
  readonly pass: (ms: number) => void
  readonly close: () => Promise<void>
} {
  let nowMs = startMs
  const now = () => nowMs
  const reference = memoryStore({ now })
  const store = sqliteStore({ path: ':memory:', now })
  return {
    both: async (call) => [await call(store), await call(reference)],
    pass: (ms) => {
      nowMs += ms
    },
    close: () => store.close(),
  }
}

it.each(Array.from({ length: 40 }, (_, seed) => seed))(
  'answers 150 random calls like the memory store (seed %i)',
  async (seed) => {
    const roll = dice(seed)
    const maybe = (percent: number) => roll(100) < percent
    // With lines, a taker that takes less than there is may be given any of what is due.
    const withLines = seed % 2 === 1
    // And in another order, by which they get their fences.
    const seen = (value: unknown): unknown =>
      withLines
        ? JSON.parse(JSON.stringify(value, (name, part) => (name === 'fence' ? 'any' : part)))
        : value
    const pick = <T>(list: readonly T[]): T | undefined => list[roll(list.length)]
    const { both, pass, close } = pair()
    const ids = ['a', 'b', 'c', 'd', 'e']
    // The last hold of each store side by side: tokens made by `take` differ.
    const holds: (readonly [Hold, Hold])[] = []

    const payload = (): StoredPayload => ({
      body: new Uint8Array([roll(256), roll(256)]),
      headers: { 'x-number': String(roll(10)) },
    })
    const entry = (): ClaimEntry => ({
      key: keyOf(pick(ids) ?? 'a'),
      token: `token-${roll(6)}`,
      leaseMs: 1 + roll(50),
      mode: maybe(60) ? 'inline' : 'queued',
      unfinishedRetentionMs: 20 + roll(300),
      ...(maybe(60) ? { fingerprint: `print-${roll(2)}` } : {}),
      ...(maybe(50) ? { event: `event-${roll(2)}`, action: 'opened' } : {}),
      ...(maybe(60) ? { payload: payload() } : {}),
      ...(maybe(30) ? { maxAttempts: 1 + roll(3) } : {}),
      ...(maybe(30) ? { respectBackoff: true } : {}),
      ...(maybe(30) ? { redeliverDead: true } : {}),
      ...(withLines && maybe(70) ? { order: `line-${roll(2)}` } : {}),
    })

    const calls: Readonly<Record<string, () => Promise<void>>> = {
      async claim() {
        const entries = Array.from({ length: 1 + roll(3) }, entry)
        const [found, wanted] = await both((store) => store.claim(entries))
        expect(seen(found ?? 'none')).toEqual(seen(wanted ?? 'none'))
        for (const [index, result] of found.entries()) {
          const asked = entries[index]
          if (result.status !== 'claimed' || asked === undefined) continue
          const hold = { key: asked.key, token: asked.token, fence: result.fence }
          holds.push([hold, hold])
        }
      },
      async take() {
        const options = {
          limit: withLines ? 100 : 1 + roll(4),
          deadBlocksOrder: seed % 4 === 1,
          leaseMs: 1 + roll(50),
          deadRetentionMs: 1 + roll(100),
          ...(maybe(50) ? { maxAttempts: 1 + roll(3) } : {}),
        }
        const idOf = ({ hold }: TakenDelivery) => hold.key.deliveryId
        const [found, wanted] = await both(async (store) => {
          const taken = await store.take(options)
          return withLines ? taken.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1)) : taken
        })
        const shown = (list: readonly TakenDelivery[]) =>
          list.map((one) => ({ ...one, hold: { ...one.hold, token: '' } }))
        expect(seen(shown(found))).toEqual(seen(shown(wanted)))
        for (const [index, one] of found.entries()) {
          const other = wanted[index]
          if (other !== undefined) holds.push([one.hold, other.hold])
        }
      },
      async settle() {
        const held = pick(holds.slice(-6))
        if (held === undefined) return
        const [mine, theirs] = maybe(85)
          ? held
          : held.map((hold) => ({ ...hold, fence: hold.fence + 1 }))
        const way = roll(6)
        const ms = 1 + roll(100)
        const kept = maybe(30) ? { payload: payload() } : {}
        const settle = async (store: Store, hold: Hold | undefined): Promise<unknown> => {
          if (hold === undefined) return undefined
          if (way === 0) return store.renew(hold, ms)
          if (way === 1) return store.complete(hold, { retentionMs: ms })
          if (way === 2)
            return store.complete(hold, {
              retentionMs: ms,
              result: new Uint8Array([ms]),
              payloadRetentionMs: ms,
            })
          if (way === 3)
            return store.fail(hold, {
              code: 'x',
              durationMs: ms,
              retryInMs: ms,
              retentionMs: 2 * ms,
              ...kept,
            })
          if (way === 4)
            return store.fail(hold, { code: 'y', dead: true, retentionMs: ms, ...kept })
          return store.release(hold)
        }
        let asked = 0
        const [found, wanted] = await both((store) => settle(store, asked++ === 0 ? mine : theirs))
        expect(seen(found ?? 'none')).toEqual(seen(wanted ?? 'none'))
      },
      async latest() {
        const asked = {
          entity: `entity-${roll(2)}`,
          occurredAtMs: roll(5),
          retentionMs: 1 + roll(100),
        }
        const [found, wanted] = await both((store) => store.latest(asked))
        expect(seen(found ?? 'none')).toEqual(seen(wanted ?? 'none'))
      },
      async abandon() {
        const held = pick(holds.slice(-6))
        if (held === undefined) return
        let asked = 0
        await both((store) => {
          const hold = asked++ === 0 ? held[0] : held[1]
          return store.abandon(hold.key, hold.token)
        })
      },
      async retry() {
        const key = keyOf(pick(ids) ?? 'a')
        const [found, wanted] = await both((store) => store.retry(key))
        expect(seen(found ?? 'none')).toEqual(seen(wanted ?? 'none'))
      },
      async purge() {
        // As many as there are: which ones a smaller batch takes first is the store's choice.
        const [found, wanted] = await both((store) => store.purge(100))
        expect(seen(found ?? 'none')).toEqual(seen(wanted ?? 'none'))
      },
      async wait() {
        pass(roll(60))
      },
    }

    const names = ['claim', 'claim', 'claim', 'settle', 'settle', 'settle', 'take', 'wait', 'wait']
    for (let step = 0; step < 150; step++) {
      const name = maybe(85) ? pick(names) : pick(Object.keys(calls))
      await calls[name ?? 'wait']?.()
      const [found, wanted] = await both((store) => store.list())
      expect(seen(found), `after step ${step}, ${name}`).toEqual(seen(wanted ?? 'none'))
      const key = keyOf(pick(ids) ?? 'a')
      const [record, wantedRecord] = await both((store) => store.get(key))
      expect(seen(record ?? 'none'), `after step ${step}, ${name}`).toEqual(
        seen(wantedRecord ?? 'none'),
      )
      const [foundStats, wantedStats] = await both((store) => store.stats())
      expect(foundStats).toEqual(wantedStats)
    }
    await close()
  },
)

it('gives the same pages and the same filters', async () => {
  const { both, pass, close } = pair()
  for (let index = 0; index < 25; index++) {
    pass(10)
    await both((store) =>
      store.claim([
        {
          key: { ...keyOf(`d-${index}`), provider: index % 2 === 0 ? 'github' : 'stripe' },
          token: 'mine',
          leaseMs: 100,
          mode: index % 3 === 0 ? 'queued' : 'inline',
          unfinishedRetentionMs: 100_000,
          event: `event-${index % 4}`,
          payload: { body: new Uint8Array(), headers: {} },
        },
      ]),
    )
  }
  const filters = [
    {},
    { state: 'pending' },
    { state: 'completed' },
    { provider: 'stripe' },
    { event: 'event-1', state: 'processing' },
    { since: new Date(startMs + 50), until: new Date(startMs + 150) },
  ] as const
  for (const filter of filters) {
    let cursor: string | undefined
    let pages = 0
    do {
      const query = { ...filter, limit: 4, ...(cursor === undefined ? {} : { cursor }) }
      const [found, wanted] = await both((store) => store.list(query))
      expect(found).toEqual(wanted)
      cursor = found.next
      pages += 1
    } while (cursor !== undefined)
    expect(pages).toBeLessThan(9)
  }
  await close()
})
