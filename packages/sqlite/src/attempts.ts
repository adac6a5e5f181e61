/** The last attempts of a record that did not complete: kept beside it, written only when one of them ends. */
import type { AttemptRecord } from '@webhook-inbox/core'
import type { RecordRow } from './row.ts'
import type { Tables } from './schema.ts'
import { type Connection, statement, text } from './statement.ts'

const kept = 10

export interface Attempts {
  read(connection: Connection, id: number): readonly AttemptRecord[]
  /** Inside a write transaction. */
  add(connection: Connection, id: number, attempt: AttemptRecord): void
}

export function createAttempts({ attempts }: Tables): Attempts {
  const find = statement(`SELECT log FROM ${attempts} WHERE id = :id`)
  const save = statement(`
    INSERT INTO ${attempts} (id, log) VALUES (:id, :log) ON CONFLICT (id) DO UPDATE SET log = excluded.log`)

  function read(connection: Connection, id: number): readonly AttemptRecord[] {
    const row = connection.rows(find, { id })[0]
    const entries: unknown = row === undefined ? [] : JSON.parse(text(row, 'log'))
    if (!Array.isArray(entries)) throw new TypeError(`Table ${attempts} holds a log that is none.`)
    return entries.map(attemptOf)
  }

  return {
    read,
    add(connection, id, attempt) {
      const log = [...read(connection, id), attempt].slice(-kept).map(entryOf)
      connection.rows(save, { id, log: JSON.stringify(log) })
    },
  }
}

/** What is told of an owner that let a claimed record go by the end of its lease. */
export function lostOwner({ attempt, untilAtMs }: RecordRow): AttemptRecord {
  return { attempt, endedAt: new Date(untilAtMs), code: 'lease_expired' }
}

/** How many of the last attempts, in a row, were ended by the lease alone. */
export function lostOwnersOf(attempts: readonly AttemptRecord[]): number {
  const other = attempts.findLastIndex(({ code }) => code !== 'lease_expired')
  return attempts.length - 1 - other
}

type Entry = readonly [
  attempt: number,
  endedAtMs: number,
  durationMs: number | undefined,
  code: string,
]

function entryOf({ attempt, endedAt, durationMs, code }: AttemptRecord): Entry {
  return [attempt, endedAt.getTime(), durationMs, code]
}

function attemptOf(entry: unknown): AttemptRecord {
  const [attempt, endedAtMs, durationMs, code] = Array.isArray(entry) ? entry : []
  if (typeof attempt !== 'number' || typeof endedAtMs !== 'number' || typeof code !== 'string')
    throw new TypeError('A log of attempts holds an entry that is none.')
  const ended = { attempt, endedAt: new Date(endedAtMs), code }
  return typeof durationMs === 'number' ? { ...ended, durationMs } : ended
}
