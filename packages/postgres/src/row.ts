/** Reading rows, whatever driver made them. */
import type { AttemptRecord, DeliveryKey, DeliveryRecord, DeliveryState } from '@webhook-inbox/core'
import type { SqlRow } from './client.ts'
import { fingerprintOf, fromHex, unescapeText } from './encode.ts'

/** Reads a text column. */
export function text(row: SqlRow, column: string): string {
  const value = row[column]
  if (typeof value === 'string') return value
  throw unexpected(column, value)
}

/** Reads a text column that may be NULL. */
export function optionalText(row: SqlRow, column: string): string | undefined {
  return row[column] === null ? undefined : text(row, column)
}

/** Reads a whole number: drivers give 64-bit ones as text, number or bigint. */
export function integer(row: SqlRow, column: string): number {
  const value = row[column]
  const isNumber =
    typeof value === 'number' ||
    typeof value === 'bigint' ||
    (typeof value === 'string' && /^-?\d{1,16}$/.test(value))
  const number = isNumber ? Number(value) : Number.NaN
  if (Number.isSafeInteger(number)) return number
  throw unexpected(column, value)
}

/** Reads a whole number that may be NULL. */
export function optionalInteger(row: SqlRow, column: string): number | undefined {
  return row[column] === null ? undefined : integer(row, column)
}

export function boolean(row: SqlRow, column: string): boolean {
  const value = row[column]
  if (typeof value === 'boolean') return value
  throw unexpected(column, value)
}

/** Reads bytes as a plain `Uint8Array` that nobody else has. */
export function optionalBytes(row: SqlRow, column: string): Uint8Array | undefined {
  const value = row[column]
  if (value === null) return undefined
  if (value instanceof Uint8Array) return new Uint8Array(value)
  if (typeof value === 'string' && value.startsWith('\\x')) return fromHex(value.slice(2))
  throw unexpected(column, value)
}

function unexpected(column: string, value: unknown): Error {
  return new TypeError(`Column "${column}" holds a ${value === null ? 'NULL' : typeof value}.`)
}

const stateOfLetter: Readonly<Record<string, DeliveryState>> = {
  p: 'pending',
  r: 'processing',
  c: 'completed',
  f: 'failed',
  d: 'dead',
}

/** The letter of a state in the table. */
export const letterOf: Readonly<Record<DeliveryState, string>> = {
  pending: 'p',
  processing: 'r',
  completed: 'c',
  failed: 'f',
  dead: 'd',
}

export function readState(row: SqlRow): DeliveryState {
  const state = stateOfLetter[text(row, 'state')]
  if (state === undefined) throw new TypeError('Column "state" holds an unknown letter.')
  return state
}

/** The columns that {@link readKey} needs. */
export const keyColumns =
  'provider, endpoint, coalesce(delivery_uuid::text, delivery_id) AS delivery_id'

export function readKey(row: SqlRow): DeliveryKey {
  return {
    provider: unescapeText(text(row, 'provider')),
    endpoint: unescapeText(text(row, 'endpoint')),
    deliveryId: unescapeText(text(row, 'delivery_id')),
  }
}

/** What {@link readRecord} needs, of the table and of the clock `now`. */
export const recordColumns: string = `key::text AS key, ${keyColumns}, state::text AS state, event, action,
  attempt, fence, encode(fingerprint, 'hex') AS fingerprint, code, has_payload, created_at, updated_at,
  until_at, due_at, keep_s`

export function readRecord(row: SqlRow, nowMs: number): DeliveryRecord {
  const state = readState(row)
  const event = optionalText(row, 'event')
  const action = optionalText(row, 'action')
  const fingerprint = optionalText(row, 'fingerprint')
  const code = optionalText(row, 'code')
  const updatedAtMs = integer(row, 'updated_at')
  const untilAtMs = optionalInteger(row, 'until_at')
  const isKept = optionalInteger(row, 'due_at') !== undefined
  return {
    key: readKey(row),
    state,
    abandoned: state === 'processing' && untilAtMs !== undefined && untilAtMs <= nowMs,
    ...(event === undefined ? {} : { event: unescapeText(event) }),
    ...(action === undefined ? {} : { action: unescapeText(action) }),
    attempt: integer(row, 'attempt'),
    fence: integer(row, 'fence'),
    ...(fingerprint === undefined ? {} : { fingerprint: fingerprintOf(fingerprint) }),
    ...(code === undefined ? {} : { code: unescapeText(code) }),
    hasPayload: boolean(row, 'has_payload'),
    createdAt: new Date(integer(row, 'created_at')),
    updatedAt: new Date(updatedAtMs),
    ...(untilAtMs === undefined ? {} : { dueAt: new Date(untilAtMs) }),
    ...(isKept ? {} : { purgeAt: new Date(updatedAtMs + 1000 * integer(row, 'keep_s')) }),
  }
}

/** Reads the column `log`: the last attempts that did not complete. NULL: none. */
export function readAttempts(row: SqlRow): readonly AttemptRecord[] {
  const log = optionalText(row, 'log')
  const entries: unknown = log === undefined ? [] : JSON.parse(log)
  if (!Array.isArray(entries)) throw unexpected('log', entries)
  return entries.map((entry) => {
    const [attempt, endedAtMs, durationMs, code] = Array.isArray(entry) ? entry : []
    if (typeof attempt !== 'number' || typeof endedAtMs !== 'number' || typeof code !== 'string')
      throw unexpected('log', entry)
    const ended = { attempt, endedAt: new Date(endedAtMs), code: unescapeText(code) }
    return typeof durationMs === 'number' ? { ...ended, durationMs } : ended
  })
}
