import { createInbox } from '@webhook-inbox/core'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { describe, expect, it } from 'vitest'
import { claimOne, grant, keyOf, kinds, nodeSqlite, rejectionOf, temporaryFile } from './support.ts'

/** The longest time that the event loop was kept from turning within the next 100 ms. */
async function longestGapMs(): Promise<number> {
  const untilMs = performance.now() + 100
  let longestMs = 0
  for (let last = performance.now(); last < untilMs; ) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - last)
    last = nowMs
  }
  return longestMs
}

/**
 * Whether the event loop turns freely for a while. A busy machine stops any process now and then, so one quiet
 * stretch among many is asked for; waiting for a lock at every attempt would leave none.
 */
async function loopTurnsFreely(): Promise<boolean> {
  for (let stretch = 0; stretch < 50; stretch++) if ((await longestGapMs()) <= 20) return true
  return false
}

describe.each(kinds)('a file that a connection of %s locks', (_, { open, store: makeStore }) => {
  it.each(['IMMEDIATE', 'EXCLUSIVE'])(
    'in BEGIN %s: claims wait, the event loop does not',
    async (mode) => {
      const { path, remove } = temporaryFile()
      // The second one's connection waits five seconds by itself, and blocks everything meanwhile.
      const database = open(path)
      database.exec('PRAGMA busy_timeout = 5000')
      const stores = [
        makeStore(path, { busyTimeoutMs: 30_000 }),
        sqliteStore({ database, busyTimeoutMs: 30_000 }),
      ]
      const locker = open(path)
      locker.exec(`BEGIN ${mode}`)
      let answered = 0
      const claims = Array.from({ length: 50 }, (_, index) =>
        stores.map(async (store) => {
          const result = await claimOne(store, `d-${index}`)
          answered += 1
          return result.status
        }),
      ).flat()
      const isFree = await loopTurnsFreely()
      expect(answered).toBe(0)
      locker.exec('COMMIT')
      const statuses = await Promise.all(claims)
      expect(isFree).toBe(true)
      expect(statuses.filter((status) => status === 'claimed')).toHaveLength(50)
      expect(statuses.filter((status) => status === 'processing')).toHaveLength(50)
      for (const store of stores) await store.close()
      locker.close()
      database.close()
      remove()
    },
  )

  it('answers copies of completed deliveries at once', async () => {
    const { path, remove } = temporaryFile()
    const store = makeStore(path, { busyTimeoutMs: 1 })
    await store.complete(await grant(store, 'done'), { retentionMs: 60_000 })
    const locker = open(path)
    locker.exec('BEGIN IMMEDIATE')
    expect(await claimOne(store, 'done')).toMatchObject({ status: 'completed' })
    expect(await store.get(keyOf('done'))).toMatchObject({ state: 'completed' })
    locker.exec('COMMIT')
    locker.close()
    await store.close()
    remove()
  })

  it('for too long, with a crowd in line: the next claim does not wait behind those whose time is up', async () => {
    const { path, remove } = temporaryFile()
    const store = makeStore(path, { busyTimeoutMs: 50 })
    const locker = open(path)
    locker.exec('BEGIN IMMEDIATE')
    const crowd = Array.from({ length: 300 }, (_, index) =>
      rejectionOf(claimOne(store, `${index}`)),
    )
    await crowd[0]
    locker.exec('COMMIT')
    expect(await claimOne(store, 'next')).toMatchObject({ status: 'claimed' })
    for (const error of await Promise.all(crowd))
      expect(error).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' })
    locker.close()
    await store.close()
    remove()
  })

  it('for too long: unavailable, and the claim is not made afterwards', async () => {
    const { path, remove } = temporaryFile()
    const store = makeStore(path, { busyTimeoutMs: 40 })
    const locker = open(path)
    locker.exec('BEGIN IMMEDIATE')
    const errors = await Promise.all([1, 2, 3].map((id) => rejectionOf(claimOne(store, `d-${id}`))))
    for (const error of errors) {
      expect(error).toMatchObject({
        code: 'ERR_STORE_UNAVAILABLE',
        message: 'The SQLite database was locked by another connection for 40 ms.',
        cause: expect.any(Error),
      })
    }
    locker.exec('COMMIT')
    // A later call goes through the same line: whatever waited before it has been decided.
    expect(await claimOne(store, 'later')).toMatchObject({ status: 'claimed' })
    expect((await store.list()).records.map(({ key }) => key.deliveryId)).toEqual(['later'])
    locker.close()
    await store.close()
    remove()
  })

  it('while the store is made: the first call sets it up', async () => {
    const { path, remove } = temporaryFile()
    const [locker, database] = [open(path), open(path)]
    locker.exec('BEGIN EXCLUSIVE')
    const store = sqliteStore({ database })
    const claim = claimOne(store, 'd')
    locker.exec('COMMIT')
    expect(await claim).toMatchObject({ status: 'claimed' })
    locker.close()
    database.close()
    remove()
  })

  it('when it is closed: what waits is refused', async () => {
    const { path, remove } = temporaryFile()
    const store = makeStore(path)
    const locker = open(path)
    locker.exec('BEGIN IMMEDIATE')
    const claim = rejectionOf(claimOne(store, 'd'))
    await store.close()
    expect(await claim).toMatchObject({
      code: 'ERR_STORE_UNAVAILABLE',
      message: 'The SQLite store is closed.',
    })
    locker.exec('COMMIT')
    locker.close()
    remove()
  })
})

it('opens its own file while it is locked, and sets it up with the first call', async () => {
  const { path, remove } = temporaryFile()
  const locker = nodeSqlite.open(path)
  locker.exec('BEGIN EXCLUSIVE')
  const store = sqliteStore({ path })
  const claim = claimOne(store, 'd')
  locker.exec('COMMIT')
  expect(await claim).toMatchObject({ status: 'claimed' })
  expect(locker.prepare('PRAGMA journal_mode').all()).toMatchObject([{ journal_mode: 'wal' }])
  locker.close()
  await store.close()
  remove()
})

it('keeps the order of calls that wait', async () => {
  const { path, remove } = temporaryFile()
  const store = sqliteStore({ path })
  const locker = nodeSqlite.open(path)
  locker.exec('BEGIN IMMEDIATE')
  const waiting = Array.from({ length: 10 }, (_, index) => claimOne(store, `d-${index}`))
  locker.exec('COMMIT')
  await Promise.all(waiting)
  const { records } = await store.list()
  expect(records.map(({ key }) => key.deliveryId)).toEqual(
    Array.from({ length: 10 }, (_, index) => `d-${9 - index}`),
  )
  locker.close()
  await store.close()
  remove()
})

it('keeps the bytes of the call, whatever happens to the buffer while it waits', async () => {
  const { path, remove } = temporaryFile()
  const store = sqliteStore({ path })
  const locker = nodeSqlite.open(path)
  locker.exec('BEGIN IMMEDIATE')
  const body = new Uint8Array([1, 2, 3])
  const claim = claimOne(store, 'd', { mode: 'queued', payload: { body, headers: {} } })
  body.fill(9)
  locker.exec('COMMIT')
  await claim
  const [taken] = await store.take({ limit: 1, leaseMs: 1000, deadRetentionMs: 1000 })
  expect(taken?.payload.body).toEqual(new Uint8Array([1, 2, 3]))
  locker.close()
  await store.close()
  remove()
})

it('abandons a claim whose caller has given up before the lock was free', async () => {
  const { path, remove } = temporaryFile()
  const store = sqliteStore({ path })
  const inbox = createInbox({ store, storeTimeoutMs: 30 })
  const locker = nodeSqlite.open(path)
  locker.exec('BEGIN IMMEDIATE')
  const key = keyOf('d')
  const request = {
    key,
    ref: { provider: 'github', endpoint: '', deliveryId: 'd' },
    fingerprint: 'x',
    minRetentionMs: 1000,
    redeliverDead: false,
  }
  expect(await inbox.open(request)).toEqual({ status: 'unavailable' })
  locker.exec('COMMIT')
  expect(await inbox.drain({ timeoutMs: 5000 })).toEqual({ drained: true, running: 0 })
  expect((await store.get(key))?.state).not.toBe('processing')
  expect(await inbox.open(request)).toMatchObject({ status: 'claimed', claim: { attempt: 1 } })
  locker.close()
  remove()
})
