import type { ExpectStatic } from 'vitest'
import { entryOf, settled, startWorker, type WorkerProcess } from './processes.ts'
import { openPlace, type StoreKind } from './stores.ts'

/**
 * Stores deliveries, a fifth of them as copies, while worker processes run them and are killed at random. Each has to be
 * completed once, and a handler to run again only after an owner was lost.
 */
export async function runManyWorkers(
  expect: ExpectStatic,
  options: {
    readonly kind: StoreKind
    readonly address: string
    readonly deliveries: number
    readonly workers: number
    readonly kills: number
    readonly leaseMs: number
  },
): Promise<void> {
  const { kind, address, deliveries, workers, kills, leaseMs } = options
  const place = await openPlace(kind, address)
  const ids = Array.from({ length: Math.round(deliveries * 0.8) }, (_, index) => `d-${index}`)
  const sent = [...ids, ...ids.filter((_, index) => index % 4 === 0)]
  const start = () => startWorker({ kind, address, leaseMs })
  const running: WorkerProcess[] = await Promise.all(Array.from({ length: workers }, start))
  const ended: WorkerProcess[] = []

  async function store(): Promise<void> {
    for (let first = 0; first < sent.length; first += 100) {
      const batch = sent.slice(first, first + 100)
      await place.store.claim(batch.map((id) => entryOf(id)))
    }
  }

  async function kill(): Promise<void> {
    for (let killed = 0; killed < kills; killed++) {
      await new Promise((resolve) => setTimeout(resolve, 150 + Math.random() * 300))
      const [victim] = running.splice(Math.floor(Math.random() * running.length), 1)
      if (victim === undefined) continue
      victim.kill()
      await victim.died
      ended.push(victim)
      running.push(await start())
    }
  }

  await Promise.all([store(), kill()])
  expect(await settled(place.store, 600_000)).toBe(true)
  let again = 0
  async function check(id: string): Promise<void> {
    const record = await place.store.get(entryOf(id).key)
    expect(record?.state).toBe('completed')
    const runs = await place.effectsOf(id)
    expect(runs).toBeGreaterThanOrEqual(1)
    // Whatever ran beyond the first had an owner that was lost.
    expect(runs).toBeLessThanOrEqual(record?.attempt ?? 0)
    // Redis drops the log of a completed record.
    if (kind !== 'redis') {
      const ends = record?.attempts?.map(({ code }) => code) ?? []
      expect(record?.attempt).toBe(1 + ends.length)
      expect(ends).toEqual(ends.map(() => 'lease_expired'))
    }
    again += runs - 1
  }
  for (let first = 0; first < ids.length; first += 100)
    await Promise.all(ids.slice(first, first + 100).map(check))
  expect(again).toBeLessThan(kills * 10 + 1)
  for (const worker of running) worker.kill()
  await Promise.all(running.map(({ died }) => died))
  await place.close()
}
