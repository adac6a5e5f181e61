import { redisStore } from '@webhook-inbox/redis'
import { storeGuarantees } from '@webhook-inbox/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisCluster, startRedisCluster } from '../../../test/services/redis-cluster.ts'
import { newPrefix, openCluster, sleep, watchWrites } from './support.ts'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startRedisCluster()
})
afterAll(() => cluster?.stop())

storeGuarantees(
  { describe, it: it.concurrent, expect },
  {
    name: 'redisStore on a cluster',
    features: ['second', 'writes'],
    tickMs: 50,
    async create() {
      const client = openCluster(cluster.addresses)
      const prefix = newPrefix()
      const watcher = await watchWrites(
        cluster.nodes.map(({ url }) => url),
        prefix,
      )
      const store = redisStore({ client, prefix })
      return {
        store,
        second: async () => redisStore({ client, prefix }),
        advance: sleep,
        writes: () => watcher.count(),
        async close() {
          await store.close()
          client.disconnect()
          watcher.close()
        },
      }
    },
  },
)
