import { redisStore } from '@webhook-inbox/redis'
import { storeGuarantees } from '@webhook-inbox/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startOrUseRedis } from '../../../test/services/redis.ts'
import { majors, newPrefix, sleep, watchWrites } from './support.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startOrUseRedis()
})
afterAll(() => server?.stop())

for (const { name, open } of majors) {
  storeGuarantees(
    // The clock of Redis cannot be moved: the tests wait, and do that side by side.
    { describe, it: it.concurrent, expect },
    {
      name: `redisStore on ${name}`,
      features: ['second', 'writes'],
      tickMs: 100,
      async create() {
        const client = open(server.url)
        const other = open(server.url, { lazyConnect: true })
        const prefix = newPrefix()
        const watcher = await watchWrites([server.url], prefix)
        const store = redisStore({ client, prefix, timeoutMs: 10_000 })
        return {
          store,
          second: async () => redisStore({ client: other, prefix, timeoutMs: 10_000 }),
          advance: sleep,
          writes: () => watcher.count(),
          async close() {
            await store.close()
            client.disconnect()
            other.disconnect()
            watcher.close()
          },
        }
      },
    },
  )
}
