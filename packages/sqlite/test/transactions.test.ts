import { DatabaseSync } from 'node:sqlite'
import { githubWebhook } from '@webhook-inbox/core'
import { type SqliteDatabase, sqliteStore } from '@webhook-inbox/sqlite'
import { signRequest } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import {
  betterSqlite3,
  claimOne,
  grant,
  keyOf,
  kinds,
  nodeSqlite,
  rejectionOf,
  temporaryFile,
} from './support.ts'

const retentionMs = 60_000

/** Waits until a call has settled or the event loop has turned a good while. */
async function settledWithin(call: Promise<unknown>, ms: number): Promise<boolean> {
  const late = new Promise<false>((resolve) => setTimeout(() => resolve(false), ms))
  return Promise.race([call.then(() => true as const), late])
}

describe.each(kinds)("the caller's transaction on %s", (_, { open, store: makeStore }) => {
  function handedIn(): {
    readonly database: SqliteDatabase
    readonly path: string
    readonly remove: () => void
  } {
    const { path, remove } = temporaryFile()
    const database = open(path)
    database.exec('CREATE TABLE business (note TEXT)')
    return { database, path, remove }
  }
  const notes = (database: SqliteDatabase) =>
    database.prepare('SELECT count(*) AS notes FROM business').all()

  it('does not undo a claim that was made meanwhile, and the claim waits for its end', async () => {
    const { database, remove } = handedIn()
    const store = sqliteStore({ database })
    database.exec('BEGIN')
    database.exec(`INSERT INTO business VALUES ('undone')`)
    const claim = claimOne(store, 'd')
    expect(await settledWithin(claim, 60)).toBe(false)
    database.exec('ROLLBACK')
    expect(await claim).toMatchObject({ status: 'claimed' })
    expect(await store.get(keyOf('d'))).toMatchObject({ state: 'processing' })
    expect(notes(database)).toEqual([{ notes: 0 }])
    database.close()
    remove()
  })

  it('makes every call but a joining one wait, then unavailable, and none runs later', async () => {
    const { database, remove } = handedIn()
    const store = sqliteStore({ database, busyTimeoutMs: 50 })
    const hold = await grant(store, 'held')
    database.exec('BEGIN')
    const calls = [
      claimOne(store, 'new'),
      store.renew(hold, 1),
      store.complete(hold, { retentionMs }),
      store.fail(hold, { code: 'x', retentionMs, dead: true }),
      store.release(hold),
      store.abandon(hold.key, hold.token),
      store.take({ limit: 1, leaseMs: 1, deadRetentionMs: 1 }),
      store.get(hold.key),
      store.list(),
      store.stats(),
      store.purge(1),
      store.setup(),
    ]
    for (const call of calls.map(rejectionOf)) {
      expect(await call).toMatchObject({
        code: 'ERR_STORE_UNAVAILABLE',
        message: expect.stringContaining('inside a transaction of yours for 50 ms'),
      })
    }
    database.exec('COMMIT')
    expect(await store.stats()).toMatchObject({ states: { processing: 1, completed: 0 } })
    expect(await store.get(keyOf('new'))).toBeUndefined()
    database.close()
    remove()
  })

  it('shows a copy no completion that may still be rolled back', async () => {
    const { database, remove } = handedIn()
    const store = sqliteStore({ database })
    const hold = await grant(store, 'd')
    database.exec('BEGIN IMMEDIATE')
    expect(await store.complete(hold, { retentionMs }, database)).toBe('ok')
    const copy = claimOne(store, 'd')
    expect(await settledWithin(copy, 40)).toBe(false)
    database.exec('ROLLBACK')
    expect(await copy).toMatchObject({ status: 'processing' })
    database.close()
    remove()
  })

  it('is joined on the connection that was handed in, with all that it wrote', async () => {
    const { database, remove } = handedIn()
    const store = sqliteStore({ database })
    const hold = await grant(store, 'd')
    database.exec('BEGIN IMMEDIATE')
    database.exec(`INSERT INTO business VALUES ('kept')`)
    // Joined before anything is awaited: whoever ends the transaction in this turn ends it with the completion.
    const joined = store.complete(hold, { retentionMs }, database)
    database.exec('COMMIT')
    expect(await joined).toBe('ok')
    expect(await claimOne(store, 'd')).toMatchObject({ status: 'completed' })
    expect(notes(database)).toEqual([{ notes: 1 }])
    database.close()
    remove()
  })

  it('is joined on another connection to the same file, for a failure too', async () => {
    const { path, remove } = temporaryFile()
    const store = makeStore(path)
    const mine = open(path)
    const [done, failed] = [await grant(store, 'done'), await grant(store, 'failed')]
    mine.exec('BEGIN')
    expect(await store.complete(done, { retentionMs }, mine)).toBe('ok')
    expect(await store.fail(failed, { code: 'x', retentionMs, retryInMs: 0 }, mine)).toBe('ok')
    // Not committed, so others still see the claim.
    expect(await store.get(done.key)).toMatchObject({ state: 'processing' })
    mine.exec('COMMIT')
    expect(await store.get(done.key)).toMatchObject({ state: 'completed' })
    expect(await store.get(failed.key)).toMatchObject({ state: 'failed', code: 'x' })
    mine.close()
    await store.close()
    remove()
  })

  it('settles a webhook with the business change, or leaves both undone', async () => {
    const { database, remove } = handedIn()
    const secret = "It's a Secret to Everybody"
    let end = 'ROLLBACK'
    const handle = githubWebhook({
      secret,
      store: sqliteStore({ database }),
      async handler(webhook) {
        database.exec('BEGIN IMMEDIATE')
        database.exec(`INSERT INTO business VALUES ('once')`)
        await webhook.completeIn(database)
        database.exec(end)
      },
    })
    const deliver = async () => {
      const signed = await signRequest('github', { secret, event: 'push', deliveryId: 'd-1' })
      const response = await handle(new Request('https://hooks.example.test/', signed))
      return [response.status, response.headers.get('webhook-inbox-status')]
    }
    expect((await deliver())[0]).toBe(503)
    expect(notes(database)).toEqual([{ notes: 0 }])
    end = 'COMMIT'
    expect(await deliver()).toEqual([200, 'completed'])
    expect(await deliver()).toEqual([200, 'completed'])
    expect(notes(database)).toEqual([{ notes: 1 }])
    database.close()
    remove()
  })

  it.each([
    ['commits after the end of the handler', 'COMMIT', 200, 'completed', 1],
    ['rolls back after the end of the handler', 'ROLLBACK', 503, 'failed', 0],
  ])('that %s decides', async (_name, end, status, state, count) => {
    const { database, path, remove } = handedIn()
    const secret = "It's a Secret to Everybody"
    const store = makeStore(path)
    const spied = { ...store }
    const asked = new Promise<void>((resolve) => {
      const { fail } = store
      // Settling has read the record and waits for the lock that the transaction still holds.
      Reflect.set(spied, 'fail', (...call: Parameters<typeof fail>) => {
        setTimeout(resolve, 0)
        return fail(...call)
      })
    })
    const handle = githubWebhook({
      secret,
      store: spied,
      async handler(webhook) {
        database.exec('BEGIN IMMEDIATE')
        database.exec(`INSERT INTO business VALUES ('once')`)
        await webhook.completeIn(database)
        void asked.then(() => database.exec(end))
      },
    })
    const signed = await signRequest('github', { secret, event: 'push' })
    const response = await handle(new Request('https://hooks.example.test/', signed))
    expect(response.status).toBe(status)
    expect(response.headers.get('webhook-inbox-status')).toBe(state)
    expect(notes(database)).toEqual([{ notes: count }])
    await store.close()
    database.close()
    remove()
  })

  it('that is rolled back counts also when the handler did not await completeIn()', async () => {
    const { database, path, remove } = handedIn()
    const secret = "It's a Secret to Everybody"
    const store = makeStore(path)
    const handle = githubWebhook({
      secret,
      store,
      handler(webhook) {
        database.exec('BEGIN IMMEDIATE')
        void webhook.completeIn(database)
        database.exec('ROLLBACK')
      },
    })
    const signed = await signRequest('github', { secret, event: 'push' })
    const response = await handle(new Request('https://hooks.example.test/', signed))
    expect([response.status, response.headers.get('webhook-inbox-status')]).toEqual([503, 'failed'])
    await store.close()
    database.close()
    remove()
  })

  it('has to be open', async () => {
    const { database, remove } = handedIn()
    const store = sqliteStore({ database })
    const hold = await grant(store, 'd')
    expect(await rejectionOf(store.complete(hold, { retentionMs }, database))).toMatchObject({
      code: 'ERR_TRANSACTION',
      message: expect.stringContaining(`db.exec('BEGIN IMMEDIATE')`),
    })
    expect(await store.get(hold.key)).toMatchObject({ state: 'processing' })
    database.close()
    remove()
  })

  it('has to be on the database of the store, whatever tables the other one has', async () => {
    const { path, remove } = temporaryFile()
    const store = makeStore(path)
    const hold = await grant(store, 'd')
    const [strange, sameTables] = [open(':memory:'), open(':memory:')]
    sqliteStore({ database: sameTables })
    for (const other of [strange, sameTables]) {
      other.exec('BEGIN')
      expect(await rejectionOf(store.complete(hold, { retentionMs }, other))).toMatchObject({
        code: 'ERR_TRANSACTION',
        message: expect.stringContaining('on another database'),
      })
      // The transaction is still its owner's.
      other.exec('COMMIT')
      other.close()
    }
    expect(await store.get(hold.key)).toMatchObject({ state: 'processing' })
    await store.close()
    remove()
  })

  it('that began to read before somebody wrote is told to begin otherwise', async () => {
    const { path, remove } = temporaryFile()
    const store = makeStore(path)
    const hold = await grant(store, 'd')
    const mine = open(path)
    mine.exec('BEGIN')
    mine.prepare('SELECT count(*) FROM webhook_inbox').all()
    await grant(store, 'other')
    expect(await rejectionOf(store.complete(hold, { retentionMs }, mine))).toMatchObject({
      code: 'ERR_STORE_UNAVAILABLE',
      message: expect.stringContaining('BEGIN IMMEDIATE'),
    })
    mine.exec('ROLLBACK')
    mine.close()
    await store.close()
    remove()
  })

  it('waits for another writer without blocking the event loop', async () => {
    const { path, remove } = temporaryFile()
    const store = makeStore(path)
    const hold = await grant(store, 'd')
    const [mine, other] = [open(path), open(path)]
    mine.exec('BEGIN')
    other.exec('BEGIN IMMEDIATE')
    const joined = store.complete(hold, { retentionMs }, mine)
    expect(await settledWithin(joined, 60)).toBe(false)
    other.exec('COMMIT')
    expect(await joined).toBe('ok')
    mine.exec('COMMIT')
    expect(await store.get(hold.key)).toMatchObject({ state: 'completed' })
    mine.close()
    other.close()
    await store.close()
    remove()
  })
})

it.each([1, 'BEGIN', {}, { exec() {} }, () => {}, Symbol('tx')])(
  'refuses %o as transaction',
  async (tx) => {
    const store = sqliteStore({ path: ':memory:' })
    const hold = await grant(store, 'd')
    expect(await rejectionOf(store.complete(hold, { retentionMs }, tx))).toMatchObject({
      code: 'ERR_TRANSACTION',
    })
    expect(await store.get(hold.key)).toMatchObject({ state: 'processing' })
    await store.close()
  },
)

it('leaves nothing half done in the transaction of a caller who goes on after an error', async () => {
  const database = new DatabaseSync(':memory:')
  const store = sqliteStore({ database })
  const hold = await grant(store, 'd')
  database.exec(`CREATE TRIGGER refuse BEFORE INSERT ON webhook_inbox_contents
    BEGIN SELECT RAISE(ABORT, 'refused'); END`)
  database.exec('BEGIN')
  const result = new Uint8Array([1])
  expect(await rejectionOf(store.complete(hold, { retentionMs, result }, database))).toMatchObject({
    code: 'ERR_STORE_UNAVAILABLE',
  })
  database.exec('COMMIT')
  expect(await store.get(hold.key)).toMatchObject({ state: 'processing' })
  database.close()
})

it('says that the connection of the transaction is closed', async () => {
  const { path, remove } = temporaryFile()
  const store = sqliteStore({ path })
  const hold = await grant(store, 'd')
  const mine = new DatabaseSync(path)
  mine.close()
  expect(await rejectionOf(store.complete(hold, { retentionMs }, mine))).toMatchObject({
    code: expect.stringMatching(/^ERR_(TRANSACTION|STORE_UNAVAILABLE)$/),
  })
  await store.close()
  remove()
})

it('refuses a connection of another SQLite library: two in one process break a file', async () => {
  const { path, remove } = temporaryFile()
  const store = nodeSqlite.store(path)
  const hold = await grant(store, 'd')
  const other = betterSqlite3.open(path)
  other.exec('BEGIN')
  expect(await rejectionOf(store.complete(hold, { retentionMs }, other))).toMatchObject({
    code: 'ERR_TRANSACTION',
    message: expect.stringContaining('another SQLite library'),
  })
  other.exec('ROLLBACK')
  expect(await store.get(hold.key)).toMatchObject({ state: 'processing' })
  other.close()
  await store.close()
  remove()
})

it('finds an open transaction where the connection does not tell (node:sqlite before 22.16)', async () => {
  const modern = new DatabaseSync(':memory:')
  const database: SqliteDatabase = {
    prepare: (sql) => modern.prepare(sql),
    exec: (sql) => modern.exec(sql),
    close: () => modern.close(),
  }
  const store = sqliteStore({ database })
  const hold = await grant(store, 'd')
  expect(await rejectionOf(store.complete(hold, { retentionMs }, database))).toMatchObject({
    code: 'ERR_TRANSACTION',
  })
  database.exec('BEGIN')
  const claim = claimOne(store, 'meanwhile')
  expect(await store.complete(hold, { retentionMs }, database)).toBe('ok')
  expect(modern.isTransaction).toBe(true)
  database.exec('COMMIT')
  expect(await claim).toMatchObject({ status: 'claimed' })
  expect(await store.get(hold.key)).toMatchObject({ state: 'completed' })
})
