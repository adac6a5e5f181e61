// 20 workers, 100,000 deliveries with a fifth of copies, killed at random.
import { it } from 'vitest'
import { runManyWorkers } from './many-workers.ts'
import { targets } from './places.ts'

it('does each of 100,000 deliveries once with 20 workers on PostgreSQL', async ({ expect }) => {
  const target = await targets.postgres()
  try {
    await runManyWorkers(expect, {
      kind: 'postgres',
      address: await target.newAddress(),
      deliveries: 100_000,
      workers: 20,
      kills: 60,
      leaseMs: 5000,
    })
  } finally {
    await target.stop()
  }
}, 1_200_000)
