import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import { redisStore } from '@webhook-inbox/redis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type OwnRedisServer, startRedis } from '../../../test/services/redis.ts'
import { entryOf, newPrefix, openRedis } from './support.ts'

let server: OwnRedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server?.stop())

/** Starts a process; resolves when it is connected. */
async function start(name: string): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('./claimer.ts', import.meta.url))
  const child = fork(script, [server.url, name], {
    execArgv: ['--conditions=@webhook-inbox/source'],
  })
  // Twenty-four at once would starve the tests that run beside this one.
  if (child.pid !== undefined) setPriority(child.pid, 10)
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`The process ended with ${code} before it was ready.`)
  })
  died.catch(() => {}) // it ends when the test is over
  await Promise.race([once(child, 'message'), died])
  return child
}

interface Answer {
  readonly won: readonly string[]
  readonly told: Readonly<Record<string, number>>
}

/** Lets all processes ask for `count` keys at the same moment. */
async function race(
  children: readonly ChildProcess[],
  prefix: string,
  count: number,
): Promise<readonly Answer[]> {
  const answers = children.map(async (child) => {
    const [answer]: Answer[] = await once(child, 'message')
    if (answer === undefined) throw new Error('A process gave no answer.')
    return answer
  })
  for (const child of children) child.send({ prefix, count })
  return Promise.all(answers)
}

it('lets 24 processes race for 400 new keys and 300 expired leases: one winner each, and every loser knows', {
  timeout: 120_000,
}, async () => {
  const client = openRedis(server.url)
  const names = Array.from({ length: 24 }, (_, index) => `process-${index}`)
  const children = await Promise.all(names.map(start))
  for (const { count, attempt } of [
    { count: 400, attempt: 1 },
    { count: 300, attempt: 2 },
  ]) {
    const prefix = newPrefix()
    const store = redisStore({ client, prefix, timeoutMs: 20_000 })
    const fences = new Map<string, number>()
    if (attempt === 2) {
      const entries = Array.from({ length: count }, (_, index) =>
        entryOf(`d-${index}`, { leaseMs: 1 }),
      )
      const results = await store.claim(entries)
      for (const [index, result] of results.entries())
        if (result.status === 'claimed') fences.set(`d-${index}`, result.fence)
      expect(fences.size).toBe(count)
    }
    const answers = await race(children, prefix, count)
    const won = answers.flatMap((answer) => answer.won)
    expect(won).toHaveLength(count)
    expect(new Set(won).size).toBe(count)
    for (const { won: mine, told } of answers)
      expect(told).toEqual({
        ...(mine.length === 0 ? {} : { claimed: mine.length }),
        ...(mine.length === count ? {} : { processing: count - mine.length }),
      })
    const { records } = await store.list({ limit: 1000 })
    expect(records).toHaveLength(count)
    for (const record of records) {
      expect(record).toMatchObject({ state: 'processing', attempt, abandoned: false })
      expect(record.fence).toBeGreaterThan(fences.get(record.key.deliveryId) ?? 0)
    }
  }
  for (const child of children) child.disconnect()
  client.disconnect()
})
