import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { expect, it } from 'vitest'
import { claimOne, keyOf, temporaryFile } from './support.ts'

/** Starts a process on the file; resolves when its store is open. */
async function start(path: string, name: string, mode: 'race' | 'hold'): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL('./claimer.ts', import.meta.url)), [path, name, mode], {
    execArgv: ['--conditions=@webhook-inbox/source'],
  })
  const died = once(child, 'exit').then(([code]) => {
    throw new Error(`The process ended with ${code} before it was ready.`)
  })
  await Promise.race([once(child, 'message'), died])
  died.catch(() => {}) // it ends when the test is over
  return child
}

async function answer(child: ChildProcess): Promise<object> {
  child.send('go')
  const [message] = await once(child, 'message')
  return message
}

it('lets four processes that open one new file at the same moment race for 400 keys: one wins each', async () => {
  const { path, remove } = temporaryFile()
  const names = ['a', 'b', 'c', 'd']
  const children = await Promise.all(names.map((name) => start(path, name, 'race')))
  const answers = await Promise.all(children.map(answer))
  const won = answers.map((found) => ('won' in found && Array.isArray(found.won) ? found.won : []))
  for (const child of children) child.disconnect()
  expect(won.flat()).toHaveLength(400)
  expect(new Set(won.flat()).size).toBe(400)
  const store = sqliteStore({ path })
  const { records } = await store.list({ limit: 1000 })
  expect(records.every(({ attempt, state }) => attempt === 1 && state === 'processing')).toBe(true)
  // One counter for all processes: no fence was given twice.
  expect(new Set(records.map(({ fence }) => fence)).size).toBe(400)
  await store.close()
  remove()
})

it('lets exactly one take over from a killed process, and not before its lease ends', async () => {
  const { path, remove } = temporaryFile()
  const child = await start(path, 'killed', 'hold')
  const held = await answer(child)
  const fence = 'fence' in held && typeof held.fence === 'number' ? held.fence : 0
  child.kill('SIGKILL')
  await once(child, 'exit')

  let nowMs = Date.now()
  const stores = Array.from({ length: 3 }, () => sqliteStore({ path, now: () => nowMs }))
  const record = await stores[0]?.get(keyOf('d-0'))
  const endsAtMs = record?.dueAt?.getTime() ?? 0
  const askAll = async () => {
    const asked = stores.flatMap((store) => Array.from({ length: 5 }, () => claimOne(store, 'd-0')))
    return (await Promise.all(asked)).map(({ status }) => status).toSorted()
  }
  nowMs = endsAtMs - 1
  expect(await askAll()).toEqual(Array.from({ length: 15 }, () => 'processing'))
  nowMs = endsAtMs
  expect(await askAll()).toEqual(['claimed', ...Array.from({ length: 14 }, () => 'processing')])
  const [store] = stores
  if (store === undefined) throw new Error('No store.')
  const dead = { key: keyOf('d-0'), token: 'killed-d-0', fence }
  expect(await store.complete(dead, { retentionMs: 1000 })).toBe('lost')
  expect(await store.renew(dead, 1000)).toBe('lost')
  expect(await store.fail(dead, { code: 'x', retentionMs: 1000, retryInMs: 0 })).toBe('lost')
  const taken = await store.get(dead.key)
  expect(taken).toMatchObject({ state: 'processing', attempt: 2 })
  expect(taken?.fence).toBeGreaterThan(fence)
  for (const one of stores) await one.close()
  remove()
})
