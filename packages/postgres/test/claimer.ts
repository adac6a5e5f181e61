// A process of its own on the database that the first argument names. It talks to its parent over the IPC channel.
import { createHash } from 'node:crypto'
import process from 'node:process'
import { type ClaimResult, hasCode } from '@webhook-inbox/core'
import { postgresStore } from '@webhook-inbox/postgres'
import pg from 'pg'

const [connectionString, name = '', count = ''] = process.argv.slice(2)
const pool = new pg.Pool({ connectionString, max: 2 })
const store = postgresStore({ pool, timeoutMs: 30_000, onWarning: () => {} })
const keys = Array.from({ length: Number(count) }, (_, index) => index)

// Each process asks in an order of its own, and all for all.
function shuffled(prefix: string): readonly string[] {
  const rank = (key: string) => createHash('sha256').update(name).update(key).digest('hex')
  return keys.map((index) => `${prefix}-${index}`).toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1))
}

async function ask(prefix: string) {
  const statuses: Record<string, number> = {}
  const won: { id: string; fence: number }[] = []
  const claimOne = async (deliveryId: string): Promise<ClaimResult | undefined> =>
    (
      await store.claim([
        {
          key: { provider: 'github', endpoint: '', deliveryId },
          token: `${name}-${deliveryId}`,
          leaseMs: 60_000,
          mode: 'inline',
          unfinishedRetentionMs: 3_600_000,
        },
      ])
    )[0]
  await Promise.all(
    shuffled(prefix).map(async (id) => {
      const result = await claimOne(id).catch((error: unknown) => {
        if (!hasCode(error, 'ERR_STORE_UNAVAILABLE')) throw error
        return undefined
      })
      const status = result?.status ?? 'unavailable'
      statuses[status] = (statuses[status] ?? 0) + 1
      if (result?.status === 'claimed') won.push({ id, fence: result.fence })
    }),
  )
  return { statuses, won }
}

process.on('message', async (prefix) => {
  if (prefix === 'setup') {
    await store.setup()
    process.send?.({ statuses: {}, won: [] })
  } else {
    process.send?.(await ask(String(prefix)))
  }
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
