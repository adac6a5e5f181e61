/** The operator's side: looking, putting back to work, tidying up. */
import {
  type DeliveryKey,
  type DeliveryRecord,
  type ListPage,
  type ListQuery,
  limitOption,
  optionError,
  type RetryResult,
  readListQuery,
  type Store,
  type StoreStats,
} from '@webhook-inbox/core'
import { keyValues } from './claim.ts'
import type { Send, SqlRow } from './client.ts'
import { escapeText } from './encode.ts'
import {
  integer,
  letterOf,
  optionalInteger,
  readAttempts,
  readRecord,
  readState,
  recordColumns,
  text,
} from './row.ts'
import { purgeable, purgeMinute, type Tables } from './schema.ts'
import { askedRows, clock, digestOf, keyColumns } from './sql.ts'

export interface Operator {
  get(send: Send, key: DeliveryKey): Promise<DeliveryRecord | undefined>
  /** @throws WebhookInboxError `ERR_OPTION` when `limit` or `cursor` is not one */
  list(send: Send, query: ListQuery): Promise<ListPage>
  stats(send: Send): Promise<StoreStats>
  retry(send: Send, key: DeliveryKey): Promise<RetryResult>
  purge(send: Send, limit: number): Promise<number>
  latest(send: Send, entry: LatestEntry): Promise<boolean>
}

export type LatestEntry = Parameters<Store['latest']>[0]

/** Completed records are counted one by one up to here; beyond, the planner's estimate is told. */
const countedExactly = 100_000

const minuteMs = 60_000

/**
 * Pages over everything look at the newest minute first, then at eight times as much, and so on: an index that
 * costs nothing per record knows where these are.
 */
const windowsMs = [1, 8, 64, 512, 4096, 32_768, 262_144].map((minutes) => minutes * minuteMs)

export function createOperator({ records, contents, lines, attempts, latest }: Tables): Operator {
  const getText = `WITH ${askedRows(keyColumns)}
    SELECT ${recordColumns}, clock.now, (
      SELECT kept.log::text FROM ${attempts} AS kept WHERE kept.key = clock.asked_key
    ) AS log
    FROM (SELECT key AS asked_key, now FROM asked) AS clock JOIN ${records} ON key = clock.asked_key`
  const retryText = `WITH ${askedRows(keyColumns)}, changed AS (
    UPDATE ${records} AS row SET
      state = CASE WHEN row.has_payload THEN 'p' ELSE 'f' END, attempt = 0, updated_at = ask.now,
      until_at = ask.now, due_at = CASE WHEN row.has_payload THEN ask.now END
    FROM asked AS ask WHERE row.key = ask.key AND row.state IN ('d', 'f')
    RETURNING row.key, row.has_payload, row.line, ask.now
  ), woken AS (
    INSERT INTO ${lines} AS line (due_at, line) SELECT changed.now, changed.line FROM changed WHERE changed.line IS NOT NULL
    ON CONFLICT (line) DO UPDATE SET due_at = excluded.due_at
  )
  SELECT CASE
      WHEN changed.has_payload THEN 'pending'
      WHEN NOT changed.has_payload THEN 'needs_redelivery'
      WHEN row.key IS NOT NULL THEN 'not_retryable'
      ELSE 'not_found'
    END AS answer
  FROM asked LEFT JOIN changed ON changed.key = asked.key LEFT JOIN ${records} AS row ON row.key = asked.key`
  const openText = `SELECT state::text AS state, count(*) AS records, min(created_at) AS oldest_at,
      count(*) FILTER (WHERE state = 'r' AND until_at <= clock.now) AS overdue, min(clock.now) AS now
    FROM ${records}, ${clock} AS clock WHERE state <> 'c' GROUP BY state`
  const completedText = `SELECT count(*) AS counted, (
      SELECT reltuples::bigint FROM pg_class WHERE oid = '${records}'::regclass
    ) AS estimated
    FROM (SELECT FROM ${records} WHERE state = 'c' LIMIT ${countedExactly + 1}) AS completed`
  // Records are locked before what lies beside them, as everywhere.
  const dropPayloadsText = `WITH clock AS MATERIALIZED ${clock}, locked AS MATERIALIZED (
    SELECT row.key, row.has_result FROM ${contents} AS content JOIN ${records} AS row ON row.key = content.key
    WHERE content.payload_until <= (SELECT now FROM clock)
    ORDER BY content.payload_until LIMIT $1::integer
    FOR UPDATE OF row SKIP LOCKED
  ), changed AS (
    UPDATE ${records} AS row SET has_payload = false FROM locked WHERE row.key = locked.key
  ), dropped AS (
    DELETE FROM ${contents} AS content USING locked WHERE content.key = locked.key AND NOT locked.has_result
  )
  UPDATE ${contents} AS content SET headers = NULL, body = NULL, payload_until = NULL
  FROM locked WHERE content.key = locked.key AND locked.has_result`
  const isOver = 'row.updated_at + row.keep_s * 1000::bigint <= (SELECT now FROM clock)'
  const purgeText = `WITH clock AS MATERIALIZED ${clock}, settled AS MATERIALIZED (
    SELECT row.key, row.has_payload OR row.has_result AS has_contents FROM ${records} AS row
    WHERE ${purgeable} AND ${purgeMinute} <= (SELECT now / ${minuteMs} FROM clock) AND ${isOver}
    ORDER BY ${purgeMinute} LIMIT $1::integer
    FOR UPDATE SKIP LOCKED
  ), abandoned AS MATERIALIZED (
    SELECT row.key, row.has_payload OR row.has_result AS has_contents FROM ${records} AS row
    WHERE state <> 'c' AND state = 'r' AND due_at IS NULL AND until_at <= (SELECT now FROM clock) AND ${isOver}
    ORDER BY created_at LIMIT greatest(0, $1::integer - (SELECT count(*) FROM settled))
    FOR UPDATE SKIP LOCKED
  ), old AS MATERIALIZED (
    SELECT * FROM settled UNION ALL SELECT * FROM abandoned
  ), removed AS (
    DELETE FROM ${records} AS row USING old WHERE row.key = old.key RETURNING row.key
  ), cleared AS (
    DELETE FROM ${contents} AS content USING old WHERE content.key = old.key AND old.has_contents
  ), forgotten AS (
    DELETE FROM ${attempts} AS kept USING old WHERE kept.key = old.key
  )
  SELECT count(*) AS purged FROM removed`
  const forgetText = `DELETE FROM ${latest} WHERE entity IN (
    SELECT entity FROM ${latest} WHERE purge_at <= (SELECT now FROM ${clock} AS clock)
    ORDER BY purge_at LIMIT $1::integer
    FOR UPDATE SKIP LOCKED
  )`
  const latestText = `INSERT INTO ${latest} AS known (occurred_at, purge_at, entity)
    SELECT $2::bigint, clock.now + $3::bigint, ${digestOf('$1::text')} FROM ${clock} AS clock
    ON CONFLICT (entity) DO UPDATE SET occurred_at = excluded.occurred_at, purge_at = excluded.purge_at
    WHERE known.occurred_at <= excluded.occurred_at OR known.purge_at <= (SELECT now FROM ${clock} AS clock)
    RETURNING true AS is_latest`

  async function findPage(send: Send, query: ListQuery, limit: number): Promise<readonly SqlRow[]> {
    const cursor = readCursor(query.cursor)
    const untilMs = Math.min(
      query.until?.getTime() ?? Number.MAX_SAFE_INTEGER,
      cursor === undefined ? Number.MAX_SAFE_INTEGER : cursor.createdAtMs + 1,
    )
    const sinceMs = query.since?.getTime() ?? 0
    const isOpen = query.state !== undefined && query.state !== 'completed'
    const text = pageText(isOpen)
    const ask = (fromMs: number, beforeMs: number, wanted: number) =>
      send(text, [
        String(Math.max(fromMs, sinceMs)),
        String(beforeMs),
        cursor === undefined ? null : String(cursor.createdAtMs),
        cursor === undefined ? null : cursor.key,
        query.state === undefined ? null : letterOf[query.state],
        query.provider === undefined ? null : escapeText(query.provider),
        query.event === undefined ? null : escapeText(query.event),
        String(wanted),
      ])
    if (isOpen) return ask(0, untilMs, limit)

    const found: SqlRow[] = []
    const newestMs = Math.min(untilMs, (await clockOf(send)) + minuteMs)
    let beforeMs = untilMs
    for (const windowMs of [...windowsMs, Number.POSITIVE_INFINITY]) {
      const fromMs = Math.max(0, newestMs - windowMs)
      found.push(...(await ask(fromMs, beforeMs, limit - found.length)))
      if (found.length >= limit || fromMs <= sinceMs) break
      beforeMs = fromMs
    }
    return found
  }

  function pageText(isOpen: boolean): string {
    return `SELECT ${recordColumns}, clock.now FROM ${records}, ${clock} AS clock
      WHERE created_at >= $1::bigint AND created_at < $2::bigint
        AND ($3::bigint IS NULL OR (created_at, key) < ($3::bigint, $4::uuid))
        AND ($5::text IS NULL OR state = $5::text::"char") ${isOpen ? `AND state <> 'c'` : ''}
        AND ($6::text IS NULL OR provider = $6::text)
        AND ($7::text IS NULL OR event = $7::text)
      ORDER BY created_at DESC, key DESC LIMIT $8::integer`
  }

  async function clockOf(send: Send): Promise<number> {
    return integer(only(await send(`SELECT now FROM ${clock} AS clock`)), 'now')
  }

  return {
    async get(send, key) {
      const [row] = await send(getText, keyValues([{ key }]))
      return row === undefined
        ? undefined
        : { ...readRecord(row, integer(row, 'now')), attempts: readAttempts(row) }
    },

    async list(send, asked) {
      const { limit, ...query } = readListQuery(asked)
      const found = await findPage(send, query, limit + 1)
      const page = found.slice(0, limit)
      const last = page.at(-1)
      const list = page.map((row) => readRecord(row, integer(row, 'now')))
      return found.length > limit && last !== undefined
        ? { records: list, next: `${integer(last, 'created_at')}.${text(last, 'key')}` }
        : { records: list }
    },

    async stats(send) {
      const states = { pending: 0, processing: 0, completed: 0, failed: 0, dead: 0 }
      let open = 0
      let abandoned = 0
      let oldestMs: number | undefined
      for (const row of await send(openText)) {
        const state = readState(row)
        states[state] = integer(row, 'records')
        open += states[state]
        if (state === 'processing') abandoned = integer(row, 'overdue')
        if (state === 'dead') continue
        const ageMs = integer(row, 'now') - integer(row, 'oldest_at')
        oldestMs = Math.max(oldestMs ?? ageMs, ageMs)
      }
      const completed = only(await send(completedText))
      const counted = integer(completed, 'counted')
      const estimated = (optionalInteger(completed, 'estimated') ?? 0) - open
      states.completed = counted > countedExactly ? Math.max(counted, estimated) : counted
      return oldestMs === undefined
        ? { states, abandoned }
        : { states, abandoned, oldestUnfinishedMs: oldestMs }
    },

    async retry(send, key) {
      const answer = text(only(await send(retryText, keyValues([{ key }]))), 'answer')
      if (answer === 'pending' || answer === 'needs_redelivery') return answer
      return answer === 'not_found' ? 'not_found' : 'not_retryable'
    },

    async latest(send, { entity, occurredAtMs, retentionMs }) {
      const rows = await send(latestText, [
        escapeText(entity),
        String(occurredAtMs),
        String(retentionMs),
      ])
      return rows.length === 1
    },

    async purge(send, limit) {
      limitOption('purge', limit, 1_000_000)
      await send(dropPayloadsText, [String(limit)])
      await send(forgetText, [String(limit)])
      return integer(only(await send(purgeText, [String(limit)])), 'purged')
    },
  }
}

function only(rows: readonly SqlRow[]): SqlRow {
  const [row] = rows
  if (row === undefined) throw new TypeError('The client answered a question with no row.')
  return row
}

function readCursor(
  cursor: string | undefined,
): { readonly createdAtMs: number; readonly key: string } | undefined {
  if (cursor === undefined) return undefined
  const [, createdAt, key] = /^(\d{1,16})\.([0-9a-f-]{36})$/.exec(cursor) ?? []
  if (createdAt !== undefined && key !== undefined) return { createdAtMs: Number(createdAt), key }
  throw optionError('list: "cursor" must be the "next" of a page that this store gave.')
}
