// A process of its own on the file that the first argument names. It talks to its parent over the IPC channel.
import { createHash } from 'node:crypto'
import process from 'node:process'
import { sqliteStore } from '@webhook-inbox/sqlite'

const [path = '', name = '', mode = ''] = process.argv.slice(2)
const store = sqliteStore({ path, busyTimeoutMs: 20_000 })
const keys = Array.from({ length: 400 }, (_, index) => `d-${index}`)

// Each process asks in an order of its own, and all for all.
function shuffled(): readonly string[] {
  const rank = (key: string) => createHash('sha256').update(name).update(key).digest('hex')
  return keys.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1))
}

process.on('message', async () => {
  const won: string[] = []
  for (const deliveryId of mode === 'hold' ? ['d-0'] : shuffled()) {
    const [result] = await store.claim([
      {
        key: { provider: 'github', endpoint: '', deliveryId },
        token: `${name}-${deliveryId}`,
        leaseMs: mode === 'hold' ? 1000 : 60_000,
        mode: 'inline',
        unfinishedRetentionMs: 3_600_000,
      },
    ])
    if (result?.status === 'claimed') won.push(deliveryId)
    if (result?.status === 'claimed' && mode === 'hold') process.send?.({ fence: result.fence })
  }
  // A holder keeps the claim and stays, until it is killed.
  if (mode !== 'hold') process.send?.({ won })
})
process.on('disconnect', () => process.exit())
process.send?.('ready')
