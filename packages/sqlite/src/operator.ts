import {
  type DeliveryKey,
  type DeliveryRecord,
  type ListPage,
  type ListQuery,
  limitOption,
  type RetryResult,
  readListQuery,
  readNumberCursor,
  type Store,
  type StoreStats,
} from '@webhook-inbox/core'
import { createAttempts } from './attempts.ts'
import {
  keyCondition,
  keyParameters,
  type RecordRow,
  readRecord,
  readState,
  recordColumns,
} from './row.ts'
import type { Tables } from './schema.ts'
import { type Connection, integer, optionalInteger, type SqlValue, statement } from './statement.ts'

export type LatestEntry = Parameters<Store['latest']>[0]

/** The operator's side: looking, putting back to work, tidying up. */
export interface Operator {
  get(connection: Connection, key: DeliveryKey, nowMs: number): DeliveryRecord | undefined
  /** @throws WebhookInboxError `ERR_OPTION` when `limit` or `cursor` is not one */
  list(connection: Connection, query: ListQuery, nowMs: number): ListPage
  stats(connection: Connection, nowMs: number): StoreStats
  /** Inside a write transaction. */
  retry(connection: Connection, key: DeliveryKey, nowMs: number): RetryResult
  /** Inside a write transaction. */
  latest(connection: Connection, entry: LatestEntry, nowMs: number): boolean
  /** Inside a write transaction. */
  purge(connection: Connection, limit: number, nowMs: number): number
}

export function createOperator(tables: Tables): Operator {
  const { records, contents, latest } = tables
  const attempts = createAttempts(tables)
  const find = statement(`SELECT ${recordColumns} FROM ${records} WHERE ${keyCondition}`)
  const putBack = statement(`
    UPDATE ${records} SET
      state = CASE WHEN has_payload THEN 'pending' ELSE 'failed' END,
      attempt = 0, until_at = :now, updated_at = :now,
      purge_at = CASE WHEN has_payload THEN NULL ELSE :now + unfinished_retention END
    WHERE ${keyCondition} AND state IN ('dead', 'failed') RETURNING has_payload`)
  // The index on what is open serves this; completed records are only counted.
  const countOpen = statement(`
    SELECT state, count(*) AS records, min(created_at) AS oldest_at, sum(until_at <= :now) AS overdue
    FROM ${records} WHERE state <> 'completed' GROUP BY state`)
  const countAll = statement(`SELECT count(*) AS records FROM ${records}`)
  const dropPayloads = statement(`
    UPDATE ${records} SET has_payload = 0, payload_until_at = NULL
    WHERE id IN (SELECT id FROM ${records} WHERE payload_until_at <= :now ORDER BY payload_until_at LIMIT :limit)
    RETURNING id`)
  const dropPayload = statement(`UPDATE ${contents} SET headers = NULL, body = NULL WHERE id = :id`)
  const remove = statement(`
    DELETE FROM ${records} WHERE id IN (
      SELECT id FROM ${records}
      WHERE purge_at <= :now AND NOT (state = 'processing' AND until_at > :now)
      ORDER BY purge_at LIMIT :limit
    ) RETURNING id`)
  const remember = statement(`
    INSERT INTO ${latest} (entity, occurred_at, purge_at) VALUES (:entity, :occurredAt, :purgeAt)
    ON CONFLICT (entity) DO UPDATE SET occurred_at = excluded.occurred_at, purge_at = excluded.purge_at
    WHERE occurred_at <= excluded.occurred_at OR purge_at <= :now
    RETURNING entity`)
  const forget = statement(`
    DELETE FROM ${latest} WHERE entity IN (
      SELECT entity FROM ${latest} WHERE purge_at <= :now ORDER BY purge_at LIMIT :limit
    )`)

  return {
    get(connection, key, nowMs) {
      const found = connection.rows(find, keyParameters(key))[0]
      if (found === undefined) return undefined
      const ended = attempts.read(connection, integer(found, 'id'))
      return { ...toRecord(readRecord(found), nowMs), attempts: ended }
    },

    list(connection, query, nowMs) {
      const { limit, ...filters } = readListQuery(query)
      const { condition, parameters } = filterOf(filters)
      const found = connection.rows(
        statement(`
          SELECT ${recordColumns} FROM ${records}
          WHERE ${condition} ORDER BY id DESC LIMIT :limit`),
        { ...parameters, limit: limit + 1 },
      )
      const page = found.slice(0, limit)
      const last = page.at(-1)
      const list = page.map((row) => toRecord(readRecord(row), nowMs))
      return found.length > limit && last !== undefined
        ? { records: list, next: String(integer(last, 'id')) }
        : { records: list }
    },

    stats(connection, nowMs) {
      const states = { pending: 0, processing: 0, completed: 0, failed: 0, dead: 0 }
      let open = 0
      let abandoned = 0
      let oldestAtMs: number | undefined
      for (const row of connection.rows(countOpen, { now: nowMs })) {
        const state = readState(row)
        states[state] = integer(row, 'records')
        open += states[state]
        if (state === 'processing') abandoned = integer(row, 'overdue')
        if (state === 'dead') continue
        const atMs = optionalInteger(row, 'oldest_at')
        if (atMs !== undefined) oldestAtMs = Math.min(oldestAtMs ?? atMs, atMs)
      }
      const all = connection.rows(countAll, {})[0]
      if (all !== undefined) states.completed = integer(all, 'records') - open
      return oldestAtMs === undefined
        ? { states, abandoned }
        : { states, abandoned, oldestUnfinishedMs: nowMs - oldestAtMs }
    },

    retry(connection, key, nowMs) {
      const changed = connection.rows(putBack, { ...keyParameters(key), now: nowMs })[0]
      if (changed !== undefined)
        return integer(changed, 'has_payload') === 1 ? 'pending' : 'needs_redelivery'
      return connection.rows(find, keyParameters(key)).length > 0 ? 'not_retryable' : 'not_found'
    },

    latest(connection, { entity, occurredAtMs, retentionMs }, nowMs) {
      const parameters = { entity, occurredAt: occurredAtMs, purgeAt: nowMs + retentionMs }
      return connection.rows(remember, { ...parameters, now: nowMs }).length > 0
    },

    purge(connection, limit, nowMs) {
      limitOption('purge', limit, 1_000_000)
      for (const row of connection.rows(dropPayloads, { now: nowMs, limit }))
        connection.rows(dropPayload, { id: integer(row, 'id') })
      connection.rows(forget, { now: nowMs, limit })
      return connection.rows(remove, { now: nowMs, limit }).length
    },
  }
}

function filterOf({ state, provider, event, since, until, cursor }: ListQuery): {
  readonly condition: string
  readonly parameters: Readonly<Record<string, SqlValue>>
} {
  const conditions = ['id < :before']
  const parameters: Record<string, SqlValue> = {
    before: readNumberCursor(cursor) ?? Number.MAX_SAFE_INTEGER,
  }
  function filter(name: string, condition: string, value: SqlValue | undefined): void {
    if (value === undefined) return
    conditions.push(condition)
    parameters[name] = value
  }
  filter('state', 'state = :state', state)
  // Said again in the words of the partial index, so that it is used.
  if (state !== undefined && state !== 'completed') conditions.push(`state <> 'completed'`)
  filter('provider', 'provider = :provider', provider)
  filter('event', 'event = :event', event)
  filter('since', 'created_at >= :since', since?.getTime())
  filter('until', 'created_at < :until', until?.getTime())
  return { condition: conditions.join(' AND '), parameters }
}

function toRecord(row: RecordRow, nowMs: number): DeliveryRecord {
  const isOpen = row.state !== 'completed' && row.state !== 'dead'
  return {
    key: row.key,
    state: row.state,
    abandoned: row.state === 'processing' && row.untilAtMs <= nowMs,
    ...(row.event === undefined ? {} : { event: row.event }),
    ...(row.action === undefined ? {} : { action: row.action }),
    attempt: row.attempt,
    fence: row.fence,
    ...(row.fingerprint === undefined ? {} : { fingerprint: row.fingerprint }),
    ...(row.code === undefined ? {} : { code: row.code }),
    hasPayload: row.hasPayload,
    createdAt: new Date(row.createdAtMs),
    updatedAt: new Date(row.updatedAtMs),
    ...(isOpen ? { dueAt: new Date(row.untilAtMs) } : {}),
    ...(row.purgeAtMs === undefined ? {} : { purgeAt: new Date(row.purgeAtMs) }),
  }
}
