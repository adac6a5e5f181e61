import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqliteStore } from '@webhook-inbox/sqlite'
import type { StoreHarness } from '@webhook-inbox/testkit'

/** Claims in a database file of their own. */
export const inSqlite: StoreHarness = {
  name: 'sqlite',
  async create({ now }) {
    const folder = await mkdtemp(join(tmpdir(), 'webhook-inbox-'))
    const store = sqliteStore({ path: join(folder, 'inbox.db'), now })
    return {
      store,
      async close() {
        await store.close()
        await rm(folder, { recursive: true, force: true })
      },
    }
  },
}
