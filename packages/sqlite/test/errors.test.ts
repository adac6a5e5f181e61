import { chmodSync, closeSync, openSync, writeSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { sqliteStore } from '@webhook-inbox/sqlite'
import BetterSqlite3 from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { claimOne, entryOf, grant, keyOf, kinds, rejectionOf, temporaryFile } from './support.ts'

const unavailable = { code: 'ERR_STORE_UNAVAILABLE', cause: expect.any(Error) }

describe.each(kinds)('a database of %s that cannot answer', (_, { open }) => {
  it('full: unavailable, nothing half done, and well again when there is room', async () => {
    const database = open(':memory:')
    const store = sqliteStore({ database })
    database.exec('PRAGMA max_page_count = 20')
    const body = new Uint8Array(200_000)
    const queued = { mode: 'queued', payload: { body, headers: {} } } as const
    const error = await rejectionOf(store.claim([entryOf('small'), entryOf('big', queued)]))
    expect(error).toMatchObject(unavailable)
    expect(await store.get(keyOf('small'))).toBeUndefined()
    expect(database.inTransaction ?? database.isTransaction).toBe(false)
    database.exec('PRAGMA max_page_count = 100000')
    expect(await claimOne(store, 'big', queued)).toMatchObject({ status: 'pending', fresh: true })
    database.close()
  })

  it('closed by its owner: unavailable', async () => {
    const database = open(':memory:')
    const store = sqliteStore({ database })
    database.close()
    expect(await rejectionOf(store.claim([entryOf('d')]))).toMatchObject(unavailable)
    expect(await rejectionOf(store.stats())).toMatchObject(unavailable)
    await store.close()
  })

  it('corrupt: unavailable', async () => {
    const { path, remove } = temporaryFile()
    const database = open(path)
    const store = sqliteStore({ database })
    for (let index = 0; index < 200; index++) await grant(store, `d-${index}`)
    const file = openSync(path, 'r+')
    writeSync(file, new Uint8Array(40_000).fill(255), 0, 40_000, 4096)
    closeSync(file)
    database.exec('PRAGMA cache_size = 0; PRAGMA shrink_memory')
    expect(
      await rejectionOf(
        store
          .take({ limit: 9, leaseMs: 1, deadRetentionMs: 1 })
          .then(() => store.list({ limit: 1000 })),
      ),
    ).toMatchObject(unavailable)
    expect(database.inTransaction ?? database.isTransaction).toBe(false)
    database.close()
    remove()
  })

  it('lost its tables: unavailable, and no transaction is left open', async () => {
    const database = open(':memory:')
    const store = sqliteStore({ database })
    database.exec('DELETE FROM webhook_inbox_meta')
    expect(await rejectionOf(store.claim([entryOf('d')]))).toMatchObject(unavailable)
    database.exec('DROP TABLE webhook_inbox')
    expect(await rejectionOf(store.claim([entryOf('d')]))).toMatchObject(unavailable)
    expect(database.inTransaction ?? database.isTransaction).toBe(false)
    database.close()
  })
})

it('answers copies on a connection that may only read, and refuses to claim there', async () => {
  const { path, remove } = temporaryFile()
  const writer = sqliteStore({ path })
  await writer.complete(await grant(writer, 'done'), { retentionMs: 60_000 })
  const reader = sqliteStore({ database: new DatabaseSync(path, { readOnly: true }) })
  expect((await claimOne(reader, 'done')).status).toBe('completed')
  expect(await rejectionOf(reader.claim([entryOf('new')]))).toMatchObject(unavailable)
  await writer.close()
  remove()
})

it('says at once that a read-only database cannot hold the tables', () => {
  const { path, remove } = temporaryFile()
  new DatabaseSync(path).close()
  chmodSync(path, 0o444)
  const database = new BetterSqlite3(path, { readonly: true })
  expect(() => sqliteStore({ database })).toThrow(
    expect.objectContaining({ code: 'ERR_STORE_SETUP' }),
  )
  remove()
})
