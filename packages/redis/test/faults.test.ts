import { inspect } from 'node:util'
import { createInbox } from '@webhook-inbox/core'
import { redisStore } from '@webhook-inbox/redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startProxy } from '../../../test/services/proxy.ts'
import { type OwnRedisServer, startRedis } from '../../../test/services/redis.ts'
import { type RedisSentinel, startRedisSentinel } from '../../../test/services/redis-sentinel.ts'
import {
  claimOne,
  entryOf,
  errorOf,
  grantOne,
  keyOf,
  majors,
  newPrefix,
  openRedis,
  openSentinel,
  sleep,
} from './support.ts'

const retentionMs = 3_600_000
const payload = { body: new TextEncoder().encode('a secret body'), headers: {} }

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(settings: Readonly<Record<string, string>> = {}): Promise<OwnRedisServer> {
  const server = await startRedis({ settings })
  ends.push(() => server.stop())
  return server
}

function open(url: string, options: Parameters<typeof openRedis>[1] = {}) {
  const client = openRedis(url, options)
  ends.push(() => client.disconnect())
  return client
}

/** Asks until it is answered. */
async function whenBack<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await call()
    } catch (error) {
      if (tries === 200) throw error
      await sleep(50)
    }
  }
}

describe('scripts', () => {
  it.each(majors)('are sent again after SCRIPT FLUSH, on $name', async ({ open: openMajor }) => {
    const server = await start()
    const client = openMajor(server.url, { enableAutoPipelining: true })
    ends.push(() => client.disconnect())
    const store = redisStore({ client, prefix: newPrefix() })
    const { hold } = await grantOne(store, entryOf('d-1'))
    await client.script('FLUSH')
    const ids = Array.from({ length: 50 }, (_, index) => `e-${index}`)
    const results = await Promise.all(ids.map((id) => claimOne(store, entryOf(id))))
    expect(results.every(({ status }) => status === 'claimed')).toBe(true)
    await client.script('FLUSH')
    expect(await store.renew(hold, 1000)).toBe('ok')
    expect(await store.complete(hold, { retentionMs })).toBe('ok')
    // Known again, they go by their hash.
    await claimOne(store, entryOf('d-1'))
    await client.config('RESETSTAT')
    await claimOne(store, entryOf('d-1'))
    expect(await client.info('commandstats')).not.toContain('cmdstat_eval:')
  })
})

describe('a restart', () => {
  it.each(['shutDown', 'kill'] as const)(
    'with persistence keeps all, and the fence grows: %s',
    async (end) => {
      const server = await start({ appendonly: 'yes', appendfsync: 'always' })
      const store = redisStore({ client: open(server.url), prefix: newPrefix() })
      const done = await grantOne(store, entryOf('done'))
      await store.complete(done.hold, { retentionMs, result: new Uint8Array([7]) })
      await claimOne(store, entryOf('queued', { mode: 'queued', payload }))
      const running = await grantOne(store, entryOf('running'))
      const short = await grantOne(store, entryOf('short', { leaseMs: 1 }))
      await server[end]()
      await server.start()
      const copy = await whenBack(() => claimOne(store, entryOf('done')))
      expect(copy.status === 'completed' && copy.result).toEqual(new Uint8Array([7]))
      expect((await claimOne(store, entryOf('running'))).status).toBe('processing')
      expect(await store.complete(running.hold, { retentionMs })).toBe('ok')
      const over = await grantOne(store, entryOf('short'))
      expect(over.attempt).toBe(2)
      expect(over.fence).toBeGreaterThan(running.fence)
      expect(await store.complete(short.hold, { retentionMs })).toBe('lost')
      const taken = await store.take({ limit: 10, leaseMs: 1000, deadRetentionMs: 1000 })
      expect(taken.map(({ hold }) => hold.key)).toEqual([keyOf('queued')])
      expect(taken[0]?.hold.fence).toBeGreaterThan(over.fence)
    },
  )

  it('that loses all gives greater fences still, and holders of before settle nothing', async () => {
    const server = await start()
    const store = redisStore({ client: open(server.url), prefix: newPrefix() })
    const before = await grantOne(store, entryOf('d-1', { token: 'same' }))
    await server.kill()
    await server.start()
    const after = await whenBack(() => grantOne(store, entryOf('d-1', { token: 'same' })))
    expect(after.fence).toBeGreaterThan(before.fence)
    expect(await store.complete(before.hold, { retentionMs })).toBe('lost')
  })
})

describe('a server that is gone', () => {
  it('is unavailable within the deadline, runs nothing later, and is back without a restart', async () => {
    const server = await start({ appendonly: 'yes', appendfsync: 'always' })
    const client = open(server.url)
    const store = redisStore({ client, prefix: newPrefix(), timeoutMs: 300 })
    const { hold } = await grantOne(store, entryOf('held'))
    await server.shutDown()
    const startedAtMs = performance.now()
    const calls = [
      claimOne(store, entryOf('d-1')),
      store.renew(hold, 1000),
      store.complete(hold, { retentionMs }),
      store.fail(hold, { code: 'x', retentionMs, dead: true }),
      store.release(hold),
      store.abandon(hold.key, hold.token),
      store.take({ limit: 1, leaseMs: 1000, deadRetentionMs: 1000 }),
      store.get(hold.key),
      store.list(),
      store.stats(),
      store.retry(hold.key),
      store.purge(10),
      store.setup(),
    ]
    const errors = await Promise.all(calls.map(errorOf))
    expect(errors.map(({ code }) => code)).toEqual(calls.map(() => 'ERR_STORE_UNAVAILABLE'))
    expect(performance.now() - startedAtMs).toBeLessThan(5000)
    await server.start()
    const late = await whenBack(() => store.get(keyOf('d-1')))
    expect(late).toBeUndefined()
    expect((await store.get(hold.key))?.state).toBe('processing')
    expect(await store.complete(hold, { retentionMs })).toBe('ok')
  })

  it('is known by its error when the client gives up by itself', async () => {
    const server = await start()
    const client = open(server.url, { enableOfflineQueue: false, maxRetriesPerRequest: 0 })
    const store = redisStore({ client, prefix: newPrefix(), timeoutMs: 500 })
    await grantOne(store, entryOf('d-1'))
    await server.kill()
    const error = await errorOf(claimOne(store, entryOf('d-2')))
    expect(error.code).toBe('ERR_STORE_UNAVAILABLE')
    client.disconnect()
    const ended = await errorOf(claimOne(store, entryOf('d-3')))
    expect(ended.code).toBe('ERR_STORE_UNAVAILABLE')
  })

  it('lets a lazy client connect by its first call', async () => {
    const server = await start()
    const store = redisStore({
      client: open(server.url, { lazyConnect: true }),
      prefix: newPrefix(),
    })
    expect((await claimOne(store, entryOf('d-1'))).status).toBe('claimed')
  })
})

describe('a bad connection', () => {
  let server: OwnRedisServer
  let proxy: Awaited<ReturnType<typeof startProxy>>
  beforeEach(async () => {
    server = await startRedis()
    proxy = await startProxy(server)
  })
  afterEach(async () => {
    await proxy.close()
    await server.stop()
  })
  const url = () => `redis://${proxy.host}:${proxy.port}`

  it('that swallows the reply of a claim leaves the owner the owner, with fence and attempt', async () => {
    const prefix = newPrefix()
    const client = open(url(), { autoResendUnfulfilledCommands: false })
    const store = redisStore({ client, prefix, timeoutMs: 500 })
    await grantOne(store, entryOf('warm'))
    const asked = entryOf('d-1')
    const swallowed = proxy.swallowReply()
    const [error] = await Promise.all([errorOf(claimOne(store, asked)), swallowed])
    expect(error.code).toBe('ERR_STORE_UNAVAILABLE')

    const direct = redisStore({ client: open(server.url), prefix })
    const record = await direct.get(asked.key)
    expect(record).toMatchObject({ state: 'processing', attempt: 1 })
    const again = await whenBack(() => grantOne(store, asked))
    expect(again).toMatchObject({ attempt: 1, fence: record?.fence })
    expect(await store.complete(again.hold, { retentionMs })).toBe('ok')
  })

  it('that swallows the reply of a settlement answers the resent one "already"', async () => {
    const client = open(url(), { autoResendUnfulfilledCommands: false })
    const store = redisStore({ client, prefix: newPrefix(), timeoutMs: 500 })
    const one = await grantOne(store, entryOf('d-1'))
    const two = await grantOne(store, entryOf('d-2'))
    const failure = { code: 'x', retentionMs, retryInMs: 0 }
    // A script that the server does not know yet would only have its refusal swallowed.
    await store.complete((await grantOne(store, entryOf('e-1'))).hold, { retentionMs })
    await store.fail((await grantOne(store, entryOf('e-2'))).hold, failure)
    for (const settle of [
      () => store.complete(one.hold, { retentionMs }),
      () => store.fail(two.hold, failure),
    ]) {
      const [error] = await Promise.all([errorOf(settle()), proxy.swallowReply()])
      expect(error.code).toBe('ERR_STORE_UNAVAILABLE')
      expect(await whenBack(settle)).toBe('already')
    }
  })

  it('that is cut while claims are under way grants none twice', async () => {
    const prefix = newPrefix()
    const store = redisStore({ client: open(url()), prefix, timeoutMs: 1000 })
    const direct = redisStore({ client: open(server.url), prefix })
    const ids = Array.from({ length: 300 }, (_, index) => `d-${index}`)
    const entries = ids.map((id) => entryOf(id))
    const asked = entries.map((entry) => whenBack(() => claimOne(store, entry)))
    const rivals = ids.map((id) => claimOne(direct, entryOf(id)))
    for (let times = 0; times < 5; times++) {
      await sleep(10)
      proxy.cut()
    }
    const [ours, theirs] = await Promise.all([Promise.all(asked), Promise.all(rivals)])
    for (const index of ids.keys())
      expect([ours[index]?.status, theirs[index]?.status].toSorted()).toEqual([
        'claimed',
        'processing',
      ])
  })

  it('that goes silent is unavailable in time, and the unseen claim is given back', async () => {
    const prefix = newPrefix()
    const client = open(url())
    const store = redisStore({ client, prefix, timeoutMs: 200 })
    await grantOne(store, entryOf('warm'))
    proxy.drop('replies')
    const inbox = createInbox({ store, storeTimeoutMs: 400, leaseMs: 60_000 })
    const key = keyOf('d-1')
    const opened = await inbox.open({
      key,
      ref: key,
      fingerprint: 'f',
      minRetentionMs: 1000,
      redeliverDead: false,
    })
    expect(opened.status).toBe('unavailable')
    const direct = redisStore({ client: open(server.url), prefix })
    expect((await direct.get(key))?.state).toBe('processing')
    proxy.accept()
    proxy.cut()
    await expect.poll(async () => (await direct.get(key))?.state, { timeout: 5000 }).toBe('failed')
    expect((await claimOne(direct, entryOf('d-1'))).status).toBe('claimed')
  })
})

describe('errors', () => {
  it('hold neither token nor payload', async () => {
    const server = await start()
    const client = open(server.url)
    const store = redisStore({ client, prefix: newPrefix(), shards: 1 })
    const asked = entryOf('d-1', { mode: 'queued', payload, token: 'a-secret-token' })
    await claimOne(store, asked)
    await client.config('SET', 'min-replicas-to-write', '1')
    const error = await errorOf(claimOne(store, { ...asked, key: keyOf('d-2') }))
    expect(error.message).toContain('too few replicas')
    expect(inspect(error, { depth: 9 })).not.toMatch(/a secret body|a-secret-token|61 20 73 65/)
  })
})

describe('full memory', () => {
  it('is unavailable for claims, lets claims be completed, and claims again when there is room', async () => {
    const server = await start({ 'maxmemory-policy': 'noeviction' })
    const client = open(server.url)
    const store = redisStore({ client, prefix: newPrefix() })
    await store.setup()
    const held = await grantOne(store, entryOf('held'))
    const failing = await grantOne(store, entryOf('failing'))
    await client.config('SET', 'maxmemory', '1')
    for (const mode of ['inline', 'queued'] as const) {
      const error = await errorOf(claimOne(store, entryOf('new', { mode, payload })))
      expect(error.code).toBe('ERR_STORE_UNAVAILABLE')
      expect(error.message).toContain('memory is full')
    }
    expect(await store.get(keyOf('new'))).toBeUndefined()
    expect((await claimOne(store, entryOf('held'))).status).toBe('processing')
    expect(await store.complete(held.hold, { retentionMs })).toBe('ok')
    expect((await claimOne(store, entryOf('held'))).status).toBe('completed')
    expect(await store.fail(failing.hold, { code: 'x', retentionMs, retryInMs: 0 })).toBe('ok')
    const error = await errorOf(claimOne(store, entryOf('failing')))
    expect(error.code).toBe('ERR_STORE_UNAVAILABLE')
    expect(await store.get(keyOf('failing'))).toMatchObject({ state: 'failed', attempt: 1 })
    await client.config('SET', 'maxmemory', '0')
    expect((await claimOne(store, entryOf('new'))).status).toBe('claimed')
    expect((await grantOne(store, entryOf('failing'))).attempt).toBe(2)
  })
})

describe('a failover', () => {
  let servers: RedisSentinel
  beforeEach(async () => {
    servers = await startRedisSentinel()
  })
  afterEach(() => servers?.stop())

  it('keeps replicated claims, raises the fence, and the store goes on by itself', async () => {
    const client = openSentinel(servers)
    ends.push(() => client.disconnect())
    const prefix = newPrefix()
    const store = redisStore({
      client,
      prefix,
      timeoutMs: 3000,
      waitForReplicas: { count: 1, timeoutMs: 2500 },
    })
    await store.setup()
    const held = await grantOne(store, entryOf('held'))
    const done = await grantOne(store, entryOf('done'))
    await store.complete(done.hold, { retentionMs })
    // A later write that has reached the replica has taken the completion with it.
    await grantOne(store, entryOf('short', { leaseMs: 1 }))
    await servers.primary.kill()
    const error = await errorOf(claimOne(store, entryOf('meanwhile')))
    expect(error.code).toBe('ERR_STORE_UNAVAILABLE')
    await servers.failedOver()
    // No replica is left to wait for: a store without the wish, on the same data.
    const alone = redisStore({ client, prefix, timeoutMs: 3000 })
    const copy = await whenBack(() => claimOne(alone, entryOf('done')))
    expect(copy.status).toBe('completed')
    expect((await claimOne(alone, entryOf('held'))).status).toBe('processing')
    expect(await alone.complete(held.hold, { retentionMs })).toBe('ok')
    const over = await grantOne(alone, entryOf('short'))
    expect(over.attempt).toBe(2)
    expect(over.fence).toBeGreaterThan(held.fence)
  })
})
