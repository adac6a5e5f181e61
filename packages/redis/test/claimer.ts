// A process of its own on the server of its first argument. It talks to its parent over the IPC channel.
import { createHash } from 'node:crypto'
import process from 'node:process'
import { redisStore } from '@webhook-inbox/redis'
import { Redis } from 'ioredis'

const [url = '', name = ''] = process.argv.slice(2)
const client = new Redis(url)

// Each process asks in an order of its own, and all for all.
function shuffled(count: number): readonly string[] {
  const ids = Array.from({ length: count }, (_, index) => `d-${index}`)
  const rank = (key: string) => createHash('sha256').update(name).update(key).digest('hex')
  return ids.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1))
}

process.on('message', async ({ prefix, count }: { prefix: string; count: number }) => {
  const store = redisStore({ client, prefix, timeoutMs: 20_000 })
  const won: string[] = []
  const told: Record<string, number> = {}
  const results = await Promise.all(
    shuffled(count).map(async (deliveryId) => {
      const [result] = await store.claim([
        {
          key: { provider: 'github', endpoint: '', deliveryId },
          token: `${name}-${deliveryId}`,
          leaseMs: 60_000,
          mode: 'inline',
          unfinishedRetentionMs: 3_600_000,
        },
      ])
      return { deliveryId, result }
    }),
  )
  for (const { deliveryId, result } of results) {
    const status = result?.status ?? 'nothing'
    told[status] = (told[status] ?? 0) + 1
    if (result?.status === 'claimed') won.push(deliveryId)
  }
  process.send?.({ won, told })
})
process.on('disconnect', () => process.exit())
await client.ping()
process.send?.('ready')
