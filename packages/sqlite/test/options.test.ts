import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { describe, expect, it } from 'vitest'
import { claimOne, entryOf, grant, keyOf, kinds, rejectionOf, temporaryFile } from './support.ts'

/** Calls it without the help of the compiler, as JavaScript would. */
function make(options?: unknown): unknown {
  return Reflect.apply(sqliteStore, undefined, [options])
}

describe('options', () => {
  const wrong: readonly (readonly [string, unknown, RegExp])[] = [
    ['nothing', undefined, /pass an object: sqliteStore\(\{ path: 'inbox.db' \}\)/],
    ['a path by itself', 'inbox.db', /pass an object/],
    ['neither path nor database', {}, /pass "path"/],
    ['an empty path', { path: '' }, /pass "path"/],
    ['a blank path', { path: '  ' }, /pass "path"/],
    ['a number as path', { path: 1 }, /pass "path"/],
    ['both', { path: ':memory:', database: new DatabaseSync(':memory:') }, /not both/],
    ['a database that is none', { database: {} }, /must be an open SQLite connection/],
    ['null as database', { database: null }, /must be an open SQLite connection/],
    ['a path as database', { database: 'inbox.db' }, /To open a file, pass "path"/],
    ['an unknown option', { path: ':memory:', tabel: 'x' }, /Did you mean "table"\?/],
    ['SQL as table', { path: ':memory:', table: 'x"; DROP TABLE y; --' }, /"table" must be a name/],
    ['an empty table', { path: ':memory:', table: '' }, /"table" must be a name/],
    ['a reserved table', { path: ':memory:', table: 'sqlite_inbox' }, /"table" must be a name/],
    ['no wait', { path: ':memory:', busyTimeoutMs: 0 }, /"busyTimeoutMs" must be/],
    ['a clock that is none', { path: ':memory:', now: 5 }, /"now" must be a function/],
  ]
  it.each(wrong)('refuses %s', (_, options, message) => {
    expect(() => make(options)).toThrow(message)
    expect(() => make(options)).toThrow(expect.objectContaining({ code: 'ERR_OPTION' }))
  })

  it('names the folder that is missing and how to create it', () => {
    const { path, remove } = temporaryFile()
    const folder = join(dirname(path), 'missing')
    expect(() => sqliteStore({ path: join(folder, 'inbox.db') })).toThrow(
      `the folder of "path" does not exist: ${folder}. Create it first`,
    )
    expect(existsSync(folder)).toBe(false)
    remove()
  })

  it('says so when the path is a folder or no database', () => {
    const { path, remove } = temporaryFile()
    mkdirSync(path)
    expect(() => sqliteStore({ path })).toThrow(/"path" cannot be opened/)
    const file = join(dirname(path), 'letter.txt')
    writeFileSync(file, 'Dear reader, this is not a database at all.'.repeat(100))
    expect(() => sqliteStore({ path: file })).toThrow(
      expect.objectContaining({ code: 'ERR_STORE_SETUP' }),
    )
    remove()
  })

  it('takes a keyword as table name, and keeps two tables of one file apart', async () => {
    const { path, remove } = temporaryFile()
    const orders = sqliteStore({ path, table: 'order' })
    const groups = sqliteStore({ path, table: 'group' })
    expect((await claimOne(orders, 'd')).status).toBe('claimed')
    expect((await claimOne(groups, 'd')).status).toBe('claimed')
    expect((await claimOne(groups, 'd')).status).toBe('processing')
    await orders.close()
    await groups.close()
    remove()
  })
})

describe('a runtime without SQLite', () => {
  it('is told both ways out', async () => {
    const script = `import('@webhook-inbox/sqlite').then(({ sqliteStore }) => sqliteStore({ path: 'inbox.db' })).catch(
      ({ code, message }) => console.log(code, message))`
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ['--no-experimental-sqlite', '--conditions=@webhook-inbox/source', '--eval', script],
      { cwd: dirname(fileURLToPath(import.meta.url)) },
    )
    expect(stdout).toBe(
      'ERR_OPTION sqliteStore: this runtime has no built-in SQLite, so "path" cannot be opened. Use Node 22.13 or newer (node:sqlite) or Bun, or install better-sqlite3 and hand a database in: sqliteStore({ database: new Database("inbox.db") }).\n',
    )
    expect(stderr).toBe('')
  })
})

describe('the schema', () => {
  it('keeps its data, and its fences grow, over closing and opening again', async () => {
    const { path, remove } = temporaryFile()
    // A clock that stands still at zero: nothing but what is stored can make the fence grow.
    const now = () => 0
    const before = sqliteStore({ path, now })
    const hold = await grant(before, 'd')
    const other = await grant(before, 'other')
    expect(other.fence).toBeGreaterThan(hold.fence)
    await before.complete(hold, { retentionMs: 1000 })
    await before.close()
    const after = sqliteStore({ path, now })
    expect(await after.complete(hold, { retentionMs: 1000 })).toBe('already')
    expect((await grant(after, 'third')).fence).toBeGreaterThan(other.fence)
    await after.close()
    remove()
  })

  it('gives a record that was purged a greater fence than before', async () => {
    const { path, remove } = temporaryFile()
    let nowMs = 0
    const store = sqliteStore({ path, now: () => nowMs })
    const hold = await grant(store, 'd')
    await store.complete(hold, { retentionMs: 1 })
    nowMs = 5
    expect(await store.purge(10)).toBe(1)
    nowMs = 0
    expect((await grant(store, 'd')).fence).toBeGreaterThan(hold.fence)
    await store.close()
    remove()
  })

  it('refuses a table of somebody else, and leaves it alone', () => {
    const database = new DatabaseSync(':memory:')
    database.exec('CREATE TABLE webhook_inbox (note TEXT)')
    expect(() => sqliteStore({ database })).toThrow(/is not this store's. Choose another name/)
    const tables = database.prepare('SELECT name FROM sqlite_master').all()
    expect(tables.map(({ name }) => name)).toEqual(['webhook_inbox'])
  })

  it('refuses the schema of a later version', () => {
    const database = new DatabaseSync(':memory:')
    sqliteStore({ database })
    database.exec('UPDATE webhook_inbox_meta SET schema_version = 99')
    expect(() => sqliteStore({ database })).toThrow(/update @webhook-inbox\/sqlite/)
  })

  it("leaves the user_version and the settings of the caller's connection alone", async () => {
    const { path, remove } = temporaryFile()
    const database = new DatabaseSync(path)
    database.exec(
      'PRAGMA user_version = 7; PRAGMA busy_timeout = 1234; PRAGMA synchronous = NORMAL',
    )
    const pragmas = () =>
      ['user_version', 'busy_timeout', 'synchronous', 'journal_mode'].map((name) =>
        Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {}),
      )
    const before = pragmas()
    const store = sqliteStore({ database })
    await claimOne(store, 'd')
    expect(pragmas()).toEqual(before)
    await store.close()
    expect(database.isOpen).toBe(true)
    database.close()
    remove()
  })

  it('uses its indexes for what is due, what is to purge and what is open', () => {
    const database = new DatabaseSync(':memory:')
    sqliteStore({ database })
    const plan = (sql: string) =>
      database
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => String(detail))
        .join('; ')
    expect(plan('SELECT id FROM webhook_inbox WHERE due_at <= 5 ORDER BY due_at, id')).toBe(
      'SEARCH webhook_inbox USING INDEX webhook_inbox_due (due_at<?)',
    )
    expect(plan('SELECT id FROM webhook_inbox WHERE purge_at <= 5 ORDER BY purge_at')).toMatch(
      /INDEX webhook_inbox_purge \(purge_at<\?\)$/,
    )
    expect(
      plan(
        `SELECT * FROM webhook_inbox WHERE id < 9 AND state = 'dead' AND state <> 'completed' ORDER BY id DESC`,
      ),
    ).toMatch(/^SEARCH webhook_inbox USING INDEX webhook_inbox_open \(state=\? AND rowid<\?\)$/)
  })
})

describe('list', () => {
  it.each(['', 'x', '-1', '1.5', '1e3', '99999999999999999999', '1 OR 1'])(
    'refuses %o as cursor',
    async (cursor) => {
      const store = sqliteStore({ path: ':memory:' })
      expect(await rejectionOf(store.list({ cursor }))).toMatchObject({
        code: 'ERR_OPTION',
        message: expect.stringContaining('"next"'),
      })
      await store.close()
    },
  )
  it.each([0, -1, 1.5, 1001, Number.NaN])('refuses %d as limit', async (limit) => {
    const store = sqliteStore({ path: ':memory:' })
    expect(await rejectionOf(store.list({ limit }))).toMatchObject({ code: 'ERR_OPTION' })
    await store.close()
  })
})

describe('numbers and rows of any setting', () => {
  it('reads bigint and rows as arrays from node:sqlite', async () => {
    const database = new DatabaseSync(':memory:', { readBigInts: true, returnArrays: true })
    const store = sqliteStore({ database })
    const hold = await grant(store, 'd')
    expect(await store.get(keyOf('d'))).toMatchObject({ fence: hold.fence, attempt: 1 })
    expect(await store.stats()).toMatchObject({ states: { processing: 1 } })
  })

  it('reads bigint from better-sqlite3', async () => {
    const { default: BetterSqlite3 } = await import('better-sqlite3')
    const database = new BetterSqlite3(':memory:')
    database.defaultSafeIntegers(true)
    const store = sqliteStore({ database })
    const hold = await grant(store, 'd')
    expect(await store.get(keyOf('d'))).toMatchObject({ fence: hold.fence, attempt: 1 })
  })
})

describe('close', () => {
  it('is answered again and again, and ends every later call with ERR_STORE_UNAVAILABLE', async () => {
    const store = sqliteStore({ path: ':memory:' })
    const hold = await grant(store, 'd')
    await store.close()
    await store.close()
    const closed = { code: 'ERR_STORE_UNAVAILABLE', message: 'The SQLite store is closed.' }
    const calls = [
      () => store.claim([entryOf('d')]),
      () => store.renew(hold, 1),
      () => store.complete(hold, { retentionMs: 1 }),
      () => store.fail(hold, { code: 'x', retentionMs: 1, dead: true }),
      () => store.release(hold),
      () => store.abandon(hold.key, hold.token),
      () => store.take({ limit: 1, leaseMs: 1, deadRetentionMs: 1 }),
      () => store.get(hold.key),
      () => store.list(),
      () => store.stats(),
      () => store.retry(hold.key),
      () => store.purge(1),
      () => store.setup(),
    ]
    for (const call of calls) expect(await rejectionOf(call())).toMatchObject(closed)
  })

  it.each(kinds)('leaves a database of %s open', async (_, { open }) => {
    const database = open(':memory:')
    const store = sqliteStore({ database })
    await store.close()
    expect(() => database.exec('SELECT 1')).not.toThrow()
    database.close()
  })
})
