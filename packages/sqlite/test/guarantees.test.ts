import { DatabaseSync } from 'node:sqlite'
import { type SqliteDatabase, sqliteStore } from '@webhook-inbox/sqlite'
import { storeGuarantees } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { kinds, temporaryFile } from './support.ts'

const runner = { describe, it, expect }
const features = ['second', 'transactions', 'watch', 'writes'] as const

storeGuarantees(runner, {
  name: 'sqliteStore({ path })',
  features,
  async create({ now }) {
    const { path, remove } = temporaryFile()
    const store = sqliteStore({ path, now })
    const watcher = new DatabaseSync(path)
    return {
      store,
      second: async () => sqliteStore({ path, now }),
      transaction: (work) => inTransaction(new DatabaseSync(path), work),
      writes: async () => commitsSeenBy(watcher),
      async close() {
        await store.close()
        watcher.close()
        remove()
      },
    }
  },
})

for (const [name, { open }] of kinds) {
  storeGuarantees(runner, {
    name: `sqliteStore({ database }) on ${name}`,
    features,
    async create({ now }) {
      const { path, remove } = temporaryFile()
      const database = open(path)
      const store = sqliteStore({ database, now })
      const watcher = open(path)
      return {
        store,
        second: async () => sqliteStore({ database: open(path), now }),
        transaction: (work) => inTransaction(database, work),
        writes: async () => commitsSeenBy(watcher),
        async close() {
          await store.close()
          database.close()
          watcher.close()
          remove()
        },
      }
    },
  })
}

async function inTransaction(
  client: SqliteDatabase,
  work: (tx: unknown) => Promise<void>,
): Promise<void> {
  client.exec('BEGIN IMMEDIATE')
  try {
    await work(client)
    client.exec('COMMIT')
  } catch (error) {
    client.exec('ROLLBACK')
    throw error
  }
}

/** Grows with every commit of another connection. */
function commitsSeenBy(watcher: SqliteDatabase): number {
  const [row] = watcher.prepare('PRAGMA data_version').all()
  if (typeof row !== 'object' || row === null || !('data_version' in row))
    throw new Error('The connection gave no data version.')
  return Number(row.data_version)
}
