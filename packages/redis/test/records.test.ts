import { redisStore } from '@webhook-inbox/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OwnRedisServer, startRedis } from '../../../test/services/redis.ts'
import { claimOne, entryOf, grantOne, newPrefix, openRedis } from './support.ts'

let server: OwnRedisServer
let client: ReturnType<typeof openRedis>
beforeAll(async () => {
  server = await startRedis()
  client = openRedis(server.url)
})
afterAll(async () => {
  client?.disconnect()
  await server?.stop()
})

/** The names of the records under a prefix. */
async function recordsOf(prefix: string): Promise<string[]> {
  const names = await client.keys(`{${prefix}:*}:*`)
  return names.filter((name) => !/:(index|open|dead|running|fence)$/.test(name))
}

const payload = { body: new Uint8Array([1, 2, 3]), headers: { 'x-github-event': 'push' } }
const day = 86_400_000

describe('a completed record', () => {
  it('costs at most 200 bytes with its key, and nothing beside it', async () => {
    const prefix = 'webhook-inbox'
    const store = redisStore({ client, prefix })
    const key = {
      provider: 'github',
      endpoint: '512345678',
      deliveryId: '72d3162e-cc78-11e3-81ab-4c9367dc0958',
    }
    const sizes: number[] = []
    // Then the longest names that GitHub has, and room for the time of a run of minutes: two bytes more.
    for (const [event, action] of [
      ['push', undefined],
      ['pull_request', 'synchronize'],
      ['secret_scanning_alert_location', 'created'],
      ['branch_protection_configuration', 'disabled'],
      ['marketplace_purchase', 'pending_change_cancelled'],
      ['marketplace_purchase', 'pending_change_cancelled..'],
    ] as const) {
      await client.flushall()
      const { hold } = await grantOne(
        store,
        entryOf('', {
          key,
          event,
          ...(action === undefined ? {} : { action }),
          fingerprint: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
        }),
      )
      expect(await store.complete(hold, { retentionMs: 30 * day })).toBe('ok')
      const [name = '', ...more] = await recordsOf(prefix)
      expect(more).toEqual([])
      expect((await client.keys('*')).filter((one) => one !== name)).toEqual([
        expect.stringMatching(/:fence$/),
      ])
      sizes.push((await client.memory('USAGE', name)) ?? 0)
      const kept = await store.get(key)
      expect(kept).toMatchObject({ key, state: 'completed', event, attempt: 1, fence: hold.fence })
      expect(kept?.action).toBe(action)
    }
    expect(sizes[1]).toBeLessThanOrEqual(184)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(200)
  })
})

describe('texts', () => {
  it.each([
    ['event', { event: 'push' }],
    ['event and action', { event: 'pull_request', action: 'opened' }],
    ['action alone', { action: 'opened' }],
    ['neither', {}],
    ['empty ones', { event: '', action: '' }],
    ['spaces and brackets', { event: '[a b]', action: ' "c" ' }],
    ['lone surrogates', { event: '\ud800', action: '\udc00x' }],
    ['other scripts', { event: '注文', action: '👩‍🚀\u0000' }],
  ])('of event and action come back exactly: %s', async (_, about) => {
    const store = redisStore({ client, prefix: newPrefix() })
    const { hold } = await grantOne(store, entryOf('d-1', about))
    const open = await store.get(hold.key)
    expect({ event: open?.event, action: open?.action }).toEqual({
      event: undefined,
      action: undefined,
      ...about,
    })
    expect([{ ...(await store.list()).records[0], attempts: [] }]).toEqual([open])
    await store.complete(hold, { retentionMs: day })
    const done = await store.get(hold.key)
    expect({ event: done?.event, action: done?.action }).toEqual({
      event: open?.event,
      action: open?.action,
    })
  })

  it.each(['abc', 'abcd', 'ABCD', '00', 't"', '', '\ud800', 'ü ☕', 'f'.repeat(64)])(
    'of fingerprints come back exactly: %j',
    async (fingerprint) => {
      const store = redisStore({ client, prefix: newPrefix() })
      const { hold } = await grantOne(store, entryOf('d-1', { fingerprint }))
      expect((await store.get(hold.key))?.fingerprint).toBe(fingerprint)
      expect((await claimOne(store, entryOf('d-1', { fingerprint }))).fingerprintMatches).toBe(true)
      const other = entryOf('d-1', { fingerprint: `${fingerprint}00` })
      expect((await claimOne(store, other)).fingerprintMatches).toBe(false)
    },
  )

  it('of keys that differ in lone surrogates alone are different keys, which can be worked on', async () => {
    const store = redisStore({ client, prefix: newPrefix() })
    const ids = ['\ud800', '\ud801', '\ufffd']
    for (const id of ids) {
      const result = await claimOne(store, entryOf(id, { mode: 'queued', payload }))
      expect(result).toMatchObject({ status: 'pending', fresh: true })
    }
    const taken = await store.take({ limit: 10, leaseMs: 1000, deadRetentionMs: 1000 })
    expect(taken.map(({ hold }) => hold.key.deliveryId).toSorted()).toEqual(ids.toSorted())
    for (const { hold } of taken)
      expect(await store.complete(hold, { retentionMs: 1000 })).toBe('ok')
  })

  it('of tokens are told apart from one another', async () => {
    const store = redisStore({ client, prefix: newPrefix() })
    const tokens = ['ab', 'AB', 'abc', '00ab', '"ab"', '~'.repeat(64), '7422']
    for (const token of tokens) await grantOne(store, entryOf(`of ${token}`, { token }))
    for (const owner of tokens) {
      for (const token of tokens) {
        const again = await claimOne(store, entryOf(`of ${owner}`, { token }))
        expect(again.status).toBe(token === owner ? 'claimed' : 'processing')
      }
    }
  })
})

describe('a batch of copies', () => {
  it('leaves each record in one index only, whatever comes together', async () => {
    const prefix = newPrefix()
    const store = redisStore({ client, prefix, shards: 1 })
    // Those of one key are asked in the order of their tokens.
    const inline = entryOf('d-1', { token: 'a' })
    const results = await store.claim([
      inline,
      entryOf('d-1', { token: 'b', mode: 'queued', payload }),
      entryOf('d-2', { token: 'a', mode: 'queued', payload }),
      entryOf('d-2', { token: 'b' }),
    ])
    expect(results.map(({ status }) => status)).toEqual([
      'claimed',
      'processing',
      'pending',
      'claimed',
    ])
    const base = `{${prefix}:0}:`
    expect(await client.scard(`${base}running`)).toBe(0)
    expect(await client.zcard(`${base}open`)).toBe(2)
    expect((await store.stats()).states).toMatchObject({ pending: 0, processing: 2 })
    const [first] = results
    if (first?.status !== 'claimed') throw new Error('The first had to be granted.')
    const hold = { key: inline.key, token: inline.token, fence: first.fence }
    expect(await store.complete(hold, { retentionMs: day })).toBe('ok')
    expect(await client.zcard(`${base}open`)).toBe(1)
    expect(await client.zcard(`${base}index`)).toBe(1)
  })
})

describe('a delivery that comes again when Redis has removed its record', () => {
  const gone = async (prefix: string) => {
    const [name = ''] = await recordsOf(prefix)
    while ((await client.exists(name)) === 1) await new Promise(setImmediate)
  }

  it('is one delivery for operators, and purging goes on', async () => {
    const prefix = newPrefix()
    const store = redisStore({ client, prefix, shards: 1 })
    const base = `{${prefix}:0}:`
    for (const dead of [false, true]) {
      const { hold } = await grantOne(store, entryOf('d-1'))
      const end = dead ? ({ dead } as const) : { retryInMs: 0 }
      await store.fail(hold, { code: 'x', retentionMs: 30, ...end })
      await gone(prefix)
      const again = await grantOne(store, entryOf('d-1'))
      const { records } = await store.list()
      expect(records.map(({ state }) => state)).toEqual(['processing'])
      expect((await store.stats()).oldestUnfinishedMs).toBeLessThan(5000)
      expect(await store.purge(1)).toBe(0)
      await store.complete(again.hold, { retentionMs: 30 })
      expect((await store.list()).records).toEqual([])
      expect(await client.keys(`${base}*`)).not.toContain(`${base}index`)
      await gone(prefix)
    }
    expect(await client.keys(`${base}*`)).toEqual([`${base}fence`])
  })

  it('loses nothing with the bytes that were kept of the one before', async () => {
    const prefix = newPrefix()
    const store = redisStore({ client, prefix, shards: 1 })
    await claimOne(store, entryOf('d-1', { mode: 'queued', payload }))
    const [taken] = await store.take({ limit: 1, leaseMs: 1000, deadRetentionMs: 1000 })
    if (taken === undefined) throw new Error('Nothing was taken.')
    await store.complete(taken.hold, { retentionMs: 30, payloadRetentionMs: 60 })
    await gone(prefix)
    const { hold } = await grantOne(store, entryOf('d-1'))
    while ((await client.zcard(`{${prefix}:0}:index`)) === 1) await store.purge(10)
    expect(await store.renew(hold, 1000)).toBe('ok')
  })
})

describe('a lease', () => {
  it('ends by the clock of Redis', async () => {
    const store = redisStore({ client, prefix: newPrefix() })
    const startedAtMs = performance.now()
    await grantOne(store, entryOf('d-1', { leaseMs: 200 }))
    let told = await claimOne(store, entryOf('d-1'))
    let earlierMs = 200
    while (told.status === 'processing') {
      expect(told.leaseMs).toBeLessThanOrEqual(earlierMs)
      earlierMs = told.leaseMs
      told = await claimOne(store, entryOf('d-1'))
    }
    expect(told).toMatchObject({ status: 'claimed', attempt: 2 })
    // Both clocks count whole milliseconds.
    expect(performance.now() - startedAtMs).toBeGreaterThan(198)
  })
})

describe('time to live', () => {
  it('is the retention of a settled record, whatever its lease was', async () => {
    const prefix = newPrefix()
    const store = redisStore({ client, prefix })
    const left = async () => client.pttl((await recordsOf(prefix))[0] ?? '')
    const { hold } = await grantOne(store, entryOf('d-1', { unfinishedRetentionMs: 14 * day }))
    expect(await left()).toBeGreaterThan(14 * day - 60_000)
    await store.renew(hold, 1000)
    expect(await left()).toBeGreaterThan(14 * day - 60_000)
    await store.complete(hold, { retentionMs: 30 * day })
    expect(await left()).toBeGreaterThan(30 * day - 60_000)
    expect(await left()).toBeLessThanOrEqual(30 * day)
  })

  it('is at least the lease of a claim that stands', async () => {
    const prefix = newPrefix()
    const store = redisStore({ client, prefix })
    await grantOne(store, entryOf('d-1', { leaseMs: day, unfinishedRetentionMs: 1000 }))
    const [name = ''] = await recordsOf(prefix)
    expect(await client.pttl(name)).toBeGreaterThan(day - 60_000)
  })

  it('is none for unfinished work whose bytes are stored', async () => {
    const prefix = newPrefix()
    const store = redisStore({ client, prefix })
    const left = async () => client.pttl((await recordsOf(prefix))[0] ?? '')
    await claimOne(store, entryOf('d-1', { mode: 'queued', payload, unfinishedRetentionMs: 1000 }))
    expect(await left()).toBe(-1)
    const take = { limit: 1, leaseMs: 1000, deadRetentionMs: 1000 }
    const [first] = await store.take(take)
    if (first === undefined) throw new Error('Nothing was taken.')
    expect(await left()).toBe(-1)
    await store.fail(first.hold, { code: 'x', retentionMs: 1000, retryInMs: 0 })
    expect(await left()).toBe(-1)
    const [second] = await store.take(take)
    if (second === undefined) throw new Error('Nothing was taken.')
    await store.fail(second.hold, { code: 'x', retentionMs: day, dead: true })
    expect(await left()).toBeGreaterThan(day - 60_000)
    expect(await store.retry(second.hold.key)).toBe('pending')
    expect(await left()).toBe(-1)
  })
})

describe('a copy of a completed delivery', () => {
  it('writes nothing', async () => {
    const store = redisStore({ client, prefix: newPrefix() })
    const { hold } = await grantOne(store, entryOf('d-1', { fingerprint: 'first' }))
    await store.complete(hold, { retentionMs: day, result: new Uint8Array([1]) })
    await claimOne(store, entryOf('d-1'))
    const changes = async () => /rdb_changes_since_last_save:\d+/.exec(await client.info())?.[0]
    const before = await changes()
    await client.config('RESETSTAT')
    const copies = Array.from({ length: 50 }, () => entryOf('d-1', { fingerprint: 'late' }))
    const results = await store.claim(copies)
    expect(results.map(({ status }) => status)).toEqual(copies.map(() => 'completed'))
    expect(await store.complete(hold, { retentionMs: day })).toBe('already')
    expect(await changes()).toBe(before)
    const commands = (await client.info('commandstats')).matchAll(/cmdstat_([^:]+):calls/g)
    const reading = [
      'config|resetstat',
      'evalsha',
      'eval',
      'exists',
      'hexists',
      'hget',
      'info',
      'mget',
      'time',
    ]
    expect(
      [...commands].map(([, name]) => name).filter((name) => !reading.includes(name ?? '')),
    ).toEqual([])
  })
})

describe('keys', () => {
  it('carry the prefix of the client, and share a slot by shard', async () => {
    const prefixed = openRedis(server.url, { keyPrefix: 'app:' })
    const prefix = newPrefix()
    const store = redisStore({ client: prefixed, prefix, shards: 2 })
    await store.setup()
    for (let index = 0; index < 20; index++)
      await claimOne(store, entryOf(`d-${index}`, { mode: 'queued', payload }))
    const taken = await store.take({ limit: 20, leaseMs: 1000, deadRetentionMs: 1000 })
    expect(taken).toHaveLength(20)
    const names = (await client.keys(`*${prefix}*`)).filter(
      (name) => name !== `app:${prefix}:shards`,
    )
    const tags = new Set(names.map((name) => /^app:(\{[^}]+\}):/.exec(name)?.[1]))
    expect(tags).toEqual(new Set([`{${prefix}:0}`, `{${prefix}:1}`]))
    prefixed.disconnect()
  })

  it('of somebody else under our name fail only the delivery they are in the way of', async () => {
    const prefix = newPrefix()
    const store = redisStore({ client, prefix, shards: 1 })
    await claimOne(store, entryOf('d-1'))
    const [name = ''] = await recordsOf(prefix)
    await client.del(name)
    await client.lpush(name, 'not ours')
    const ids = Array.from({ length: 9 }, (_, index) => `d-${index}`)
    const answers = await Promise.allSettled(ids.map((id) => claimOne(store, entryOf(id))))
    expect(
      answers.map((answer) =>
        answer.status === 'fulfilled' ? answer.value.status : answer.reason.code,
      ),
    ).toEqual(ids.map((id) => (id === 'd-1' ? 'ERR_STORE_UNAVAILABLE' : 'claimed')))
    await client.del(name)
    expect((await store.stats()).states.processing).toBe(8)
    expect((await store.list()).records).toHaveLength(8)
  })
})
