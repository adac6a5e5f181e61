import { redisStore } from '@webhook-inbox/redis'
import { storeGuarantees } from '@webhook-inbox/testkit'
import { afterAll, beforeAll } from 'vitest'
import { type RedisServer, startOrUseRedis } from '../../../test/services/redis.ts'
import { majors, newPrefix, sleep, tickMs, waitingRunner, watchWrites } from './support.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startOrUseRedis()
})
afterAll(() => server?.stop())

for (const { name, open } of majors) {
  storeGuarantees(waitingRunner, {
    name: `redisStore on ${name}`,
    features: ['second', 'watch', 'writes'],
    tickMs,
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
  })
}
