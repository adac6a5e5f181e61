import { redisStore } from '@webhook-inbox/redis'
import { storeGuarantees } from '@webhook-inbox/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisCluster, startRedisCluster } from '../../../test/services/redis-cluster.ts'
import {
  claimOne,
  entryOf,
  errorOf,
  grantOne,
  majors,
  newPrefix,
  openCluster,
  watchWrites,
} from './support.ts'
import { createTestClock } from './test-clock.ts'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startRedisCluster()
})
afterAll(() => cluster?.stop())

storeGuarantees(
  { describe, expect, it },
  {
    name: 'redisStore on a cluster',
    features: ['second', 'watch', 'writes'],
    async create() {
      const client = openCluster(cluster.addresses)
      const prefix = newPrefix()
      const watcher = await watchWrites(
        cluster.nodes.map(({ url }) => url),
        prefix,
      )
      const clock = createTestClock()
      const openStore = () =>
        redisStore({ client: clock.wrap(client), prefix, shards: 16, timeoutMs: 10_000 })
      return {
        store: openStore(),
        second: async () => openStore(),
        advance: (ms) => watcher.except(() => clock.advance(ms, client.nodes('master'), prefix)),
        writes: () => watcher.count(),
        async close() {
          client.disconnect()
          watcher.close()
        },
      }
    },
  },
)

describe.each(majors)('a cluster by $name', ({ openCluster: openMajor }) => {
  it.each([false, true])(
    'is set up, and takes each key to its node: enableAutoPipelining %s',
    async (enableAutoPipelining) => {
      const client = openMajor(cluster.addresses, { enableAutoPipelining })
      const prefix = newPrefix()
      const warnings: string[] = []
      const store = redisStore({
        client,
        prefix,
        shards: 16,
        onWarning: ({ code }) => warnings.push(code),
      })
      await store.setup()
      // One for each node would tell nobody more.
      expect(warnings).toEqual(['persistence'])
      const ids = Array.from({ length: 200 }, (_, index) => `d-${index}`)
      const grants = await Promise.all(ids.map((id) => grantOne(store, entryOf(id))))
      const copies = await Promise.all(ids.map((id) => claimOne(store, entryOf(id))))
      expect(copies.every(({ status }) => status === 'processing')).toBe(true)
      const ended = await Promise.all(
        grants.map(({ hold }) => store.complete(hold, { retentionMs: 60_000 })),
      )
      expect(ended.every((word) => word === 'ok')).toBe(true)
      const counts = await Promise.all(
        client.nodes('master').map(async (node) => (await node.keys(`{${prefix}:*`)).length),
      )
      expect(counts).toHaveLength(3)
      expect(Math.min(...counts)).toBeGreaterThan(0)
      client.disconnect()
    },
  )
})

it('goes on with the other shards while a node is down, and with all when it is back', async () => {
  const client = openCluster(cluster.addresses)
  const store = redisStore({ client, prefix: newPrefix(), shards: 16, timeoutMs: 500 })
  const payload = { body: new Uint8Array([1]), headers: {} }
  const ids = Array.from({ length: 60 }, (_, index) => `d-${index}`)
  await store.claim(ids.map((id) => entryOf(id, { mode: 'queued', payload })))
  const [down] = cluster.nodes
  await down?.shutDown()
  const answers = await Promise.all(
    ids.map((id) =>
      claimOne(store, entryOf(`new-${id}`)).then(
        ({ status }) => status,
        ({ code }) => code,
      ),
    ),
  )
  expect(new Set(answers)).toEqual(new Set(['claimed', 'ERR_STORE_UNAVAILABLE']))
  const take = { limit: 60, leaseMs: 60_000, deadRetentionMs: 1000 }
  const taken = await store.take(take)
  expect(taken.length).toBeGreaterThan(0)
  expect(taken.length).toBeLessThan(60)
  // What needs every shard says so.
  expect((await errorOf(store.stats())).code).toBe('ERR_STORE_UNAVAILABLE')
  await down?.start()
  await expect
    .poll(
      () =>
        claimOne(store, entryOf('d-0')).then(
          () => Promise.all(ids.map((id) => claimOne(store, entryOf(`back-${id}`)))),
          () => [],
        ),
      { timeout: 15_000 },
    )
    .toHaveLength(60)
  client.disconnect()
})
