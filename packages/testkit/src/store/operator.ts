import type { StoreStats } from '@webhook-inbox/core'
import { keyOf, payloadOf, rejection, type StoreGuarantee, tally } from './harness.ts'

const oddParts = [
  '',
  '__proto__',
  'constructor',
  'ünïcode ☕ 漢字 👩‍🚀',
  'nul\u0000inside',
  'quote \' " ` backslash \\ percent % underscore _',
  'line\nfeed\ttab',
  ':/?#[]@!$&()*+,;={}',
  'x'.repeat(255),
  '漢'.repeat(255),
]

/** Keys, and what an operator sees and does. */
export const operatorGuarantees = {
  async S48({ store, entry, claim, expect }) {
    const keys = oddParts.flatMap((part) => [
      keyOf(part, 'endpoint', 'provider'),
      keyOf('id', part, 'provider'),
      keyOf('id', 'endpoint', part),
    ])
    const results = await store.claim(keys.map((key) => entry({ key })))
    expect(tally(results.map(({ status }) => status))).toEqual({ claimed: keys.length })
    for (const key of keys) {
      expect((await claim({ key })).status).toEqual('processing')
      expect((await store.get(key))?.key).toEqual(key)
    }
  },

  async S49({ claim, expect }) {
    const keys = [
      keyOf('c', 'b', 'a'),
      keyOf('bc', '', 'a'),
      keyOf('c', '', 'ab'),
      keyOf('', 'bc', 'a'),
      keyOf('abc', '', ''),
      keyOf('b:c', '', 'a'),
      keyOf('c', ':b', 'a'),
      keyOf('c', 'b:', 'a'),
      keyOf('b\u0000c', '', 'a'),
      keyOf('c', '\u0000b', 'a'),
      keyOf('1:c', '1:b', '1:a'),
      keyOf('', '1:b1:c', 'a'),
    ]
    const statuses: string[] = []
    for (const key of keys) statuses.push((await claim({ key })).status)
    expect(tally(statuses)).toEqual({ claimed: keys.length })
  },

  async S50({ claim, expect }) {
    const ids = [
      'abc',
      'ABC',
      'abc ',
      ' abc',
      'caf\u00e9',
      'cafe\u0301',
      'strasse',
      'straße',
      '1',
      '01',
      '1.0',
    ]
    const statuses: string[] = []
    for (const id of ids) statuses.push((await claim({ key: keyOf(id) })).status)
    for (const id of ids) statuses.push((await claim({ key: keyOf('same', id) })).status)
    expect(tally(statuses)).toEqual({ claimed: 2 * ids.length })
  },

  async S51({ store, grant, record, advance, tickMs, expect }) {
    expect(await store.get(keyOf('unknown'))).toEqual(undefined)
    const { hold, fence } = await grant({
      event: 'pull_request',
      action: 'opened',
      fingerprint: 'print',
    })
    const claimed = await record()
    expect({
      key: claimed.key,
      state: claimed.state,
      abandoned: claimed.abandoned,
      event: claimed.event,
      action: claimed.action,
      attempt: claimed.attempt,
      fence: claimed.fence,
      fingerprint: claimed.fingerprint,
      hasCode: 'code' in claimed,
      hasPayload: claimed.hasPayload,
      leaseMs: Number(claimed.dueAt) - Number(claimed.updatedAt),
    }).toEqual({
      key: keyOf(),
      state: 'processing',
      abandoned: false,
      event: 'pull_request',
      action: 'opened',
      attempt: 1,
      fence,
      fingerprint: 'print',
      hasCode: false,
      hasPayload: false,
      leaseMs: 10 * tickMs,
    })
    await advance(3)
    await store.fail(hold, {
      code: 'status_503',
      retentionMs: 100 * tickMs,
      retryInMs: 20 * tickMs,
    })
    const failed = await record()
    expect({
      state: failed.state,
      code: failed.code,
      event: failed.event,
      dueInMs: Number(failed.dueAt) - Number(failed.updatedAt),
      keptMs: Number(failed.purgeAt) - Number(failed.updatedAt),
      grew: failed.updatedAt.getTime() - failed.createdAt.getTime() >= 3 * tickMs,
      sameCreation: failed.createdAt.getTime() === claimed.createdAt.getTime(),
    }).toEqual({
      state: 'failed',
      code: 'status_503',
      event: 'pull_request',
      dueInMs: 20 * tickMs,
      keptMs: 100 * tickMs,
      grew: true,
      sameCreation: true,
    })
  },

  async S52({ store, entry, grant, advance, expect }) {
    // Some share their time of creation, some do not.
    for (let group = 0; group < 4; group++) {
      await store.claim(
        Array.from({ length: 5 }, (_, index) => entry({ key: keyOf(`${group}-${index}`) })),
      )
      await advance(1)
    }
    const seen: string[] = []
    const times: number[] = []
    let cursor: string | undefined
    let pages = 0
    do {
      const page = await store.list({ limit: 3, ...(cursor === undefined ? {} : { cursor }) })
      for (const { key, createdAt } of page.records) {
        seen.push(key.deliveryId)
        times.push(createdAt.getTime())
      }
      cursor = page.next
      pages += 1
      await advance(1)
      await grant({ key: keyOf(`later-${pages}`) })
    } while (cursor !== undefined && pages < 50)
    expect(pages).toEqual(7)
    expect(seen.length).toEqual(20)
    expect(new Set(seen).size).toEqual(20)
    expect(seen.some((id) => id.startsWith('later'))).toEqual(false)
    expect(times).toEqual([...times].sort((a, b) => b - a))
    expect((await store.list()).records.length).toEqual(27)
  },

  async S53({ store, grant, enqueue, record, advance, tickMs, expect }) {
    const done = await grant({ key: keyOf('1', '', 'github'), event: 'push' })
    await store.fail(done.hold, { code: 'x', retentionMs: 1000 * tickMs, dead: true })
    await advance(2)
    await grant({ key: keyOf('2', '', 'stripe'), event: 'invoice.paid' })
    await advance(2)
    await enqueue({ key: keyOf('3', '', 'github'), event: 'push' })
    const since = (await record(keyOf('2', '', 'stripe'))).createdAt
    const ids = async (query: Parameters<typeof store.list>[0]) =>
      (await store.list(query)).records.map(({ key }) => key.deliveryId)
    expect(await ids({})).toEqual(['3', '2', '1'])
    expect(await ids({ state: 'dead' })).toEqual(['1'])
    expect(await ids({ state: 'failed' })).toEqual([])
    expect(await ids({ provider: 'github' })).toEqual(['3', '1'])
    expect(await ids({ event: 'push', state: 'pending' })).toEqual(['3'])
    expect(await ids({ since })).toEqual(['3', '2'])
    expect(await ids({ until: since })).toEqual(['1'])
    const first = await store.list({ provider: 'github', limit: 1 })
    const rest = await store.list({
      provider: 'github',
      limit: 1,
      ...(first.next === undefined ? {} : { cursor: first.next }),
    })
    expect(rest.records.map(({ key }) => key.deliveryId)).toEqual(['1'])
    expect(rest.next === undefined).toEqual(true)
  },

  async S54({ store, grant, enqueue, advance, tickMs, expect }) {
    const empty = await store.stats()
    expect(withoutCompleted(empty)).toEqual({ pending: 0, processing: 0, failed: 0, dead: 0 })
    expect('oldestUnfinishedMs' in empty).toEqual(false)
    const retentionMs = 1000 * tickMs
    const done = await grant({ key: keyOf('done') })
    await store.complete(done.hold, { retentionMs })
    await advance(5)
    await grant({ key: keyOf('abandoned') })
    await advance(11)
    await grant({ key: keyOf('live') })
    await enqueue({ key: keyOf('pending') })
    const failed = await grant({ key: keyOf('failed') })
    await store.fail(failed.hold, { code: 'x', retentionMs, retryInMs: 0 })
    const dead = await grant({ key: keyOf('dead') })
    await store.fail(dead.hold, { code: 'x', retentionMs, dead: true })
    const stats = await store.stats()
    const { abandoned, oldestUnfinishedMs = -1 } = stats
    expect(withoutCompleted(stats)).toEqual({ pending: 1, processing: 2, failed: 1, dead: 1 })
    expect(abandoned).toEqual(1)
    expect(oldestUnfinishedMs >= 11 * tickMs && oldestUnfinishedMs < 16 * tickMs).toEqual(true)
  },

  async S55({ store, grant, take, record, tickMs, expect }) {
    const retentionMs = 1000 * tickMs
    const payload = payloadOf('{}')
    const dead = await grant({ key: keyOf('dead') })
    await store.fail(dead.hold, { code: 'x', retentionMs, dead: true, payload })
    const failed = await grant({ key: keyOf('failed') })
    const later = { retryInMs: 500 * tickMs, payload }
    await store.fail(failed.hold, { code: 'x', retentionMs, ...later })
    for (const id of ['dead', 'failed']) {
      expect(await store.retry(keyOf(id))).toEqual('pending')
      const { state, attempt, purgeAt } = await record(keyOf(id))
      expect({ state, attempt, kept: purgeAt === undefined }).toEqual({
        state: 'pending',
        attempt: 0,
        kept: true,
      })
    }
    const taken = await take({ maxAttempts: 1 })
    expect(taken.map(({ attempt }) => attempt)).toEqual([1, 1])
    expect(await store.retry(keyOf('dead'))).toEqual('not_retryable')
  },

  async S56({ store, grant, claim, record, tickMs, expect }) {
    expect(await store.retry(keyOf('unknown'))).toEqual('not_found')
    const first = await grant()
    expect(await store.retry(keyOf())).toEqual('not_retryable')
    await store.fail(first.hold, { code: 'x', retentionMs: 1000 * tickMs, dead: true })
    expect(await store.retry(keyOf())).toEqual('needs_redelivery')
    const { state, attempt } = await record()
    expect({ state, attempt }).toEqual({ state: 'failed', attempt: 0 })
    const next = await grant({ respectBackoff: true, maxAttempts: 1 })
    expect(next.attempt).toEqual(1)
    expect(next.fence > first.fence).toEqual(true)
    await store.complete(next.hold, { retentionMs: 1000 * tickMs })
    expect(await store.retry(keyOf())).toEqual('not_retryable')
    expect((await claim()).status).toEqual('completed')
  },

  async S57({ store, grant, claim, expect }) {
    await Promise.all([store.setup(), store.setup()])
    await grant()
    await store.setup()
    expect((await claim()).status).toEqual('processing')
    await store.close()
    await store.close()
  },

  async S58({ store, second, grant, claim, entry, tickMs, expect }) {
    const other = await second()
    const { hold } = await grant()
    const [copy] = await other.claim([entry()])
    expect(copy?.status).toEqual('processing')
    expect((await other.get(hold.key))?.fence).toEqual(hold.fence)
    expect(await other.renew(hold, 10 * tickMs)).toEqual('ok')
    expect(await other.complete(hold, { retentionMs: 100 * tickMs })).toEqual('ok')
    expect(await store.complete(hold, { retentionMs: 100 * tickMs })).toEqual('already')
    expect((await claim()).status).toEqual('completed')
  },

  async S65({ store, grant, enqueue, take, advance, tickMs, expect }) {
    await enqueue()
    await grant({ key: keyOf('old'), unfinishedRetentionMs: tickMs })
    await advance(20)
    const noLimits: readonly unknown[] = [
      0,
      -1,
      1.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      '5',
      null,
    ]
    const leaseMs = 10 * tickMs
    const codes: unknown[] = []
    // Called as plain JavaScript can: the compiler would refuse these.
    const ask = async (operation: 'list' | 'purge' | 'take', argument: unknown) =>
      codes.push(await rejection(() => Reflect.apply(store[operation], store, [argument])))
    for (const limit of [...noLimits, 1_000_001]) {
      await ask('list', { limit })
      await ask('purge', limit)
      await ask('take', { limit, leaseMs, deadRetentionMs: 1000 * tickMs })
    }
    await ask('list', { limit: 1001 })
    for (const cursor of ['', 'x', '-1', '1e3', ' 1', 5]) await ask('list', { cursor })
    for (const state of ['complete', '', 5]) await ask('list', { state })
    for (const since of ['2026-01-01', 0, new Date(Number.NaN)]) await ask('list', { since })
    await ask('list', { status: 'dead' })
    expect(codes).toEqual(codes.map(() => 'ERR_OPTION'))
    // A store may let go of the old one by itself.
    const { records } = await store.list()
    expect(records.map(({ key }) => key).filter((key) => key.deliveryId !== 'old')).toEqual([
      keyOf(),
    ])
    expect((await store.purge(1_000_000)) <= 1).toEqual(true)
    expect(await store.get(keyOf('old'))).toEqual(undefined)
    expect((await take({ limit: 1000 })).length).toEqual(1)
  },

  async S66({ store, grant, tickMs, expect }) {
    const { hold } = await grant()
    await store.complete(hold, { retentionMs: 1000 * tickMs })
    const counted = (await store.stats()).states.completed
    if (counted === undefined) {
      expect(await rejection(() => store.list({ state: 'completed' }))).toEqual('ERR_OPTION')
      expect((await store.list()).records.length).toEqual(0)
      return
    }
    expect(counted).toEqual(1)
    for (const query of [{}, { state: 'completed' }] as const)
      expect((await store.list(query)).records.map(({ state }) => state)).toEqual(['completed'])
  },
} as const satisfies Record<string, StoreGuarantee>

function withoutCompleted({ states }: StoreStats): Readonly<Record<string, number>> {
  const { completed: _, ...others } = states
  return others
}
