import { redisStore } from '@webhook-inbox/redis'
import { storeGuarantees } from '@webhook-inbox/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startOrUseRedis } from '../../../test/services/redis.ts'
import { clients, newPrefix, writesOf } from './support.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startOrUseRedis()
})
afterAll(() => server?.stop())

for (const [name, open] of Object.entries(clients)) {
  storeGuarantees(
    { describe, it, expect },
    {
      name: `redisStore on ${name}`,
      features: ['second', 'writes'],
      tickMs: 30,
      async create() {
        const client = open(server.url)
        const prefix = newPrefix()
        const store = redisStore({ client, prefix })
        return {
          store,
          second: async () => redisStore({ client, prefix }),
          advance: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
          writes: () => writesOf(client),
          async close() {
            await store.close()
            client.disconnect()
          },
        }
      },
    },
  )
}
