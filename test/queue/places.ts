/** Servers and files for the stores of these tests. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startPostgres } from '../services/postgres.ts'
import { startRedis } from '../services/redis.ts'
import type { StoreKind } from './stores.ts'

export interface Target {
  /** An address of its own for each test. */
  newAddress(): Promise<string>
  stop(): Promise<void>
}

export const targets: Readonly<Record<StoreKind, () => Promise<Target>>> = {
  async sqlite() {
    const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-queue-'))
    let files = 0
    return {
      async newAddress() {
        files += 1
        return join(folder, `inbox-${files}.db`)
      },
      stop: async () => rmSync(folder, { recursive: true }),
    }
  },
  async postgres() {
    const server = await startPostgres()
    return {
      newAddress: async () => server.url(await server.createDatabase()),
      stop: server.stop,
    }
  },
  async redis() {
    const server = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } })
    let prefixes = 0
    return {
      async newAddress() {
        prefixes += 1
        return `${server.url}?prefix=queue-${prefixes}`
      },
      stop: server.stop,
    }
  },
}

export const kinds: readonly StoreKind[] = ['sqlite', 'postgres', 'redis']
