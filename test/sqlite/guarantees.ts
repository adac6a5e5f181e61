// The store guarantees, and what a handed-in connection adds to them, as a plain script for runtimes on which
// vitest does not run. Arguments: the kind of connection and, for better-sqlite3, where it is installed.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { type SqliteDatabase, sqliteStore } from '@webhook-inbox/sqlite'
import { storeGuarantees } from '@webhook-inbox/testkit'

const [kind = '', installedAt = ''] = process.argv.slice(2)

function opener(): ((path: string) => SqliteDatabase) | undefined {
  if (kind === 'path') return undefined
  const [module, name] =
    kind === 'better-sqlite3'
      ? [
          { Database: createRequire(join(installedAt, 'package.json'))('better-sqlite3') },
          'Database',
        ]
      : [process.getBuiltinModule(kind), kind === 'node:sqlite' ? 'DatabaseSync' : 'Database']
  const Database = Reflect.get(module ?? {}, name)
  assert.equal(typeof Database, 'function', `${kind} is missing.`)
  return (path) => Reflect.construct(Database, [path])
}

const entry = {
  key: { provider: 'github', endpoint: '', deliveryId: 'd' },
  leaseMs: 1000,
  mode: 'inline',
  unfinishedRetentionMs: 60_000,
} as const
const open = opener()
const tests: { readonly name: string; readonly run: () => Promise<void> }[] = []

storeGuarantees(
  {
    describe: (_, body) => body(),
    it: (name, run) => tests.push({ name, run }),
    expect: (actual) => ({ toEqual: (expected) => assert.deepEqual(actual, expected) }),
  },
  {
    name: `sqlite on ${kind}`,
    features: open === undefined ? ['second'] : ['second', 'transactions'],
    async create({ now }) {
      const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-'))
      const path = join(folder, 'inbox.db')
      const database = open?.(path)
      const make = (own: SqliteDatabase | undefined) =>
        own === undefined ? sqliteStore({ path, now }) : sqliteStore({ database: own, now })
      const store = make(database)
      return {
        store,
        second: async () => make(open?.(path)),
        async transaction(work) {
          database?.exec('BEGIN IMMEDIATE')
          try {
            await work(database)
            database?.exec('COMMIT')
          } catch (error) {
            database?.exec('ROLLBACK')
            throw error
          }
        },
        async close() {
          await store.close()
          database?.close()
          rmSync(folder, { recursive: true, force: true })
        },
      }
    },
  },
)

if (open !== undefined) {
  tests.push({
    name: "a claim waits for the caller's transaction and is not undone by its rollback",
    async run() {
      const database = open(':memory:')
      const store = sqliteStore({ database })
      database.exec('BEGIN')
      const claim = store.claim([{ ...entry, token: 'mine' }])
      let answered = false
      claim.then(() => {
        answered = true
      })
      await new Promise((resolve) => setTimeout(resolve, 50))
      assert.equal(answered, false)
      database.exec('ROLLBACK')
      assert.equal((await claim)[0]?.status, 'claimed')
      assert.equal((await store.get(entry.key))?.state, 'processing')
      database.close()
    },
  })
  tests.push({
    name: 'a locked file does not block the event loop',
    async run() {
      const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-'))
      const [database, locker] = [open(join(folder, 'x.db')), open(join(folder, 'x.db'))]
      const store = sqliteStore({ database, busyTimeoutMs: 200 })
      locker.exec('BEGIN EXCLUSIVE')
      let turns = 0
      const timer = setInterval(() => {
        turns += 1
      }, 1)
      await assert.rejects(store.claim([{ ...entry, token: 'mine' }]), {
        code: 'ERR_STORE_UNAVAILABLE',
      })
      clearInterval(timer)
      assert.ok(turns > 5, `${turns} turns`)
      locker.exec('ROLLBACK')
      assert.equal((await store.claim([{ ...entry, token: 'mine' }]))[0]?.status, 'claimed')
      database.close()
      locker.close()
      rmSync(folder, { recursive: true, force: true })
    },
  })
}

let failed = 0
for (const { name, run } of tests) {
  try {
    await run()
  } catch (error) {
    failed += 1
    console.log(`failed: ${name}`, error)
  }
}
console.log(`passed ${tests.length - failed}, failed ${failed}`)
