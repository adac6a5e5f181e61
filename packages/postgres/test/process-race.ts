import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import type { PostgresServer } from '../../../test/services/postgres.ts'
import { deadlocks, entryOf, openStore } from './support.ts'

const processes = 24
const newKeys = 400
const expiredLeases = 300

interface Report {
  readonly statuses: Readonly<Record<string, number>>
  readonly won: readonly { readonly id: string; readonly fence: number }[]
}

async function startClaimer(url: string, name: string): Promise<ChildProcess> {
  const child = fork(
    fileURLToPath(new URL('./claimer.ts', import.meta.url)),
    [url, name, String(newKeys)],
    { execArgv: ['--conditions=@webhook-inbox/source'] },
  )
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`The process ended with ${code} before it was ready.`)
  })
  died.catch(() => {}) // it ends when the test is over
  await Promise.race([once(child, 'message'), died])
  return child
}

async function tell(child: ChildProcess, message: string): Promise<Report> {
  child.send(message)
  const [report] = await once(child, 'message')
  return report
}

function sumOf(reports: readonly Report[]): Record<string, number> {
  const sum: Record<string, number> = {}
  for (const { statuses } of reports)
    for (const [status, count] of Object.entries(statuses)) sum[status] = (sum[status] ?? 0) + count
  return sum
}

/** Lets processes race for new keys and expired leases: exactly one wins each, and every loser learns so. */
export async function raceProcesses(server: PostgresServer): Promise<void> {
  const url = server.url(await server.createDatabase())
  const children = await Promise.all(
    Array.from({ length: processes }, (_, index) => startClaimer(url, `process-${index}`)),
  )
  // All of them create the tables at the same moment.
  await Promise.all(children.map((child) => tell(child, 'setup')))

  const fresh = await Promise.all(children.map((child) => tell(child, 'new')))
  const won = fresh.flatMap((report) => report.won)
  expect(won).toHaveLength(newKeys)
  expect(new Set(won.map(({ id }) => id)).size).toBe(newKeys)
  expect(new Set(won.map(({ fence }) => fence)).size).toBe(newKeys)
  expect(sumOf(fresh)).toEqual({ claimed: newKeys, processing: (processes - 1) * newKeys })

  const { store, pool, close } = await openStore(url, { timeoutMs: 30_000 })
  const olds = await store.claim(
    Array.from({ length: newKeys }, (_, index) => entryOf(`old-${index}`)),
  )
  // The last of them stay alive.
  await pool.query(
    `UPDATE webhook_inbox SET until_at = 1 WHERE delivery_id LIKE 'old-%' AND delivery_id::text = ANY ($1::text[])`,
    [Array.from({ length: expiredLeases }, (_, index) => `old-${index}`)],
  )
  const expired = await Promise.all(children.map((child) => tell(child, 'old')))
  const takenOver = expired.flatMap((report) => report.won)
  expect(new Set(takenOver.map(({ id }) => id)).size).toBe(expiredLeases)
  expect(sumOf(expired)).toEqual({
    claimed: expiredLeases,
    processing: processes * newKeys - expiredLeases,
  })
  const highest = Math.max(...olds.map((old) => (old.status === 'claimed' ? old.fence : 0)))
  for (const { fence } of takenOver) expect(fence).toBeGreaterThan(highest)
  const { records } = await store.list({ limit: 1000 })
  const attempts = records
    .filter(({ key }) => key.deliveryId.startsWith('old'))
    .map(({ attempt }) => attempt)
  expect(attempts.filter((attempt) => attempt === 2)).toHaveLength(expiredLeases)

  expect(await deadlocks(url)).toBe(0)
  for (const child of children) child.disconnect()
  await close()
}
