import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { ClaimEntry, ClaimResult, DeliveryKey, Hold, Store } from '@webhook-inbox/core'
import { type SqliteDatabase, sqliteStore } from '@webhook-inbox/sqlite'
import BetterSqlite3 from 'better-sqlite3'

/**
 * What runs on this Node. One process must open a file with one SQLite library, so a kind makes both the store
 * and the connections beside it.
 */
export interface Kind {
  open(path: string): SqliteDatabase
  store(
    path: string,
    options?: { readonly busyTimeoutMs?: number; readonly now?: () => number },
  ): Store
}

export const nodeSqlite: Kind = {
  open: (path) => new DatabaseSync(path),
  store: (path, options) => sqliteStore({ path, ...options }),
}

export const betterSqlite3: Kind = {
  open: (path) => new BetterSqlite3(path),
  store(path, options) {
    const database = new BetterSqlite3(path)
    database.pragma('journal_mode = WAL')
    return sqliteStore({ database, ...options })
  },
}

export const kinds: readonly (readonly [string, Kind])[] = [
  ['node:sqlite', nodeSqlite],
  ['better-sqlite3', betterSqlite3],
]

/** A database file in an empty folder, and how to remove both. */
export function temporaryFile(): { readonly path: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-'))
  return {
    path: join(folder, 'inbox.db'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export function keyOf(deliveryId: string): DeliveryKey {
  return { provider: 'github', endpoint: '', deliveryId }
}

let tokens = 0

export function entryOf(deliveryId: string, overrides: Partial<ClaimEntry> = {}): ClaimEntry {
  tokens += 1
  return {
    key: keyOf(deliveryId),
    token: `token-${tokens}`,
    leaseMs: 60_000,
    mode: 'inline',
    unfinishedRetentionMs: 3_600_000,
    ...overrides,
  }
}

export async function claimOne(
  store: Store,
  deliveryId: string,
  overrides: Partial<ClaimEntry> = {},
): Promise<ClaimResult> {
  const [result] = await store.claim([entryOf(deliveryId, overrides)])
  if (result === undefined) throw new Error('The store answered nothing.')
  return result
}

/** Claims what must be free. */
export async function grant(
  store: Store,
  deliveryId: string,
  overrides: Partial<ClaimEntry> = {},
): Promise<Hold> {
  const entry = entryOf(deliveryId, overrides)
  const [result] = await store.claim([entry])
  if (result?.status !== 'claimed') throw new Error(`The claim was answered ${result?.status}.`)
  return { key: entry.key, token: entry.token, fence: result.fence }
}

/** The error that a call rejects with. */
export async function rejectionOf(call: Promise<unknown>): Promise<unknown> {
  try {
    await call
  } catch (error) {
    return error
  }
  throw new Error('The call had to reject.')
}
