import { redisStore } from '@webhook-inbox/redis'
import { storeGuarantees } from '@webhook-inbox/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startOrUseRedis } from '../../../test/services/redis.ts'
import { majors, newPrefix, watchWrites } from './support.ts'
import { createTestClock } from './test-clock.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startOrUseRedis()
})
afterAll(() => server?.stop())

for (const { name, open } of majors) {
  // The clock is moved, so that no guarantee waits, and none depends on how busy the machine is.
  storeGuarantees(
    { describe, expect, it },
    {
      name: `redisStore on ${name}`,
      features: ['second', 'watch', 'writes'],
      async create() {
        const client = open(server.url)
        const other = open(server.url, { lazyConnect: true })
        const prefix = newPrefix()
        const watcher = await watchWrites([server.url], prefix)
        const clock = createTestClock()
        const openStore = (one: typeof client) =>
          redisStore({ client: clock.wrap(one), prefix, timeoutMs: 10_000 })
        const store = openStore(client)
        return {
          store,
          second: async () => openStore(other),
          advance: (ms) => watcher.except(() => clock.advance(ms, [client], prefix)),
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
