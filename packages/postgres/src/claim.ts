/** The claim: one statement for a batch, in which every entry is granted or learns what is there. */
import type { ClaimEntry, ClaimResult } from '@webhook-inbox/core'
import { pack } from './bytes.ts'
import type { Send, SqlRow, SqlValue } from './client.ts'
import {
  arrayLiteral,
  escapeText,
  fingerprintCode,
  isCanonicalUuid,
  keyText,
  tokenNumber,
} from './encode.ts'
import { integer, optionalBytes, optionalInteger, optionalText, text } from './row.ts'
import type { Tables } from './schema.ts'
import { askedRows, type Column, keyColumns } from './sql.ts'

/** A claim that waits to be sent, its buffers copied. */
export type AskedClaim = ClaimEntry

/** What became of a claim, and of whom the record is now: enough to answer a copy that came with it. */
export interface ClaimAnswer {
  readonly result: ClaimResult
  /** Number of the token that holds the record. */
  readonly holder: string
  /** Code of the fingerprint that the record has. */
  readonly fingerprint: string | undefined
  readonly hasPayload: boolean
}

const flag = { queued: 1, respectsBackoff: 2, redeliversDead: 4, isUuid: 8 } as const

const columns: readonly Column[] = [
  ...keyColumns,
  ['token', 'bigint'],
  ['lease', 'bigint'],
  ['flags', 'integer'],
  ['keep_s', 'integer'],
  ['max_attempts', 'integer'],
  ['fingerprint_hex', 'text'],
  ['event', 'text'],
  ['action', 'text'],
]

const payloadColumns: readonly Column[] = [
  ['headers', 'text'],
  ['body_start', 'integer'],
  ['body_length', 'integer'],
]

/** How long the holder of a locked row is said to have it: its own lease cannot be read. */
const lockedLeaseMs = 1000

/**
 * Answers a batch of entries, no two of one key. A row that another transaction has locked is not waited for: it is
 * somebody's at this moment.
 */
export function createClaim(
  tables: Tables,
): (send: Send, entries: readonly AskedClaim[]) => Promise<readonly ClaimAnswer[]> {
  const plain = claimText(tables, false)
  const withPayloads = claimText(tables, true)

  async function ask(
    send: Send,
    entries: readonly AskedClaim[],
  ): Promise<ReadonlyMap<number, ClaimAnswer>> {
    const hasPayloads = entries.some(({ payload }) => payload !== undefined)
    const rows = await send(hasPayloads ? withPayloads : plain, claimValues(entries, hasPayloads))
    const answers = new Map<number, ClaimAnswer>()
    for (const row of rows) {
      const index = integer(row, 'n') - 1
      const entry = entries[index]
      if (entry !== undefined) answers.set(index, answerOf(row, entry))
    }
    return answers
  }

  return async (send, entries) => {
    const first = await ask(send, entries)
    const missing = entries.flatMap((_, index) => (first.has(index) ? [] : [index]))
    if (missing.length === 0) return entries.map((_, index) => first.get(index) ?? lockedAnswer)
    // Somebody won after this statement had begun to read, or holds the row now. The next one sees the winner.
    const second = await ask(
      send,
      missing.map((index) => entries[index]).filter((entry) => entry !== undefined),
    )
    return entries.map(
      (_, index) => first.get(index) ?? second.get(missing.indexOf(index)) ?? lockedAnswer,
    )
  }
}

const lockedAnswer: ClaimAnswer = {
  result: { status: 'processing', leaseMs: lockedLeaseMs, fingerprintMatches: true },
  holder: '',
  fingerprint: undefined,
  hasPayload: false,
}

/** What a later claim of the same key is told by the answer to the first; undefined when it has to ask by itself. */
export function answerCopy(
  answer: ClaimAnswer,
  copy: AskedClaim,
  first: AskedClaim,
): ClaimAnswer | undefined {
  const { result, holder, hasPayload } = answer
  const fingerprintMatches = matches(answer.fingerprint, copy)
  const withResult = (other: ClaimResult): ClaimAnswer => ({ ...answer, result: other })
  if (result.status === 'completed') {
    return withResult({
      ...result,
      fingerprintMatches,
      ...(result.result === undefined ? {} : { result: result.result.slice() }),
    })
  }
  if (result.status === 'dead')
    return copy.redeliverDead === true
      ? undefined
      : withResult({ status: 'dead', fingerprintMatches })
  if (copy.mode === 'queued' && !hasPayload) return undefined
  if (result.status === 'pending') {
    return copy.mode === 'queued'
      ? withResult({ status: 'pending', fresh: false, fingerprintMatches })
      : undefined
  }
  if (result.status === 'waiting') {
    return copy.mode === 'inline' &&
      copy.respectBackoff === true &&
      copy.maxAttempts === first.maxAttempts
      ? withResult({ ...result, fingerprintMatches })
      : undefined
  }
  // Whoever holds the record may ask for it again.
  if (tokenNumber(copy.token) === holder) return undefined
  return withResult({ status: 'processing', leaseMs: result.leaseMs, fingerprintMatches })
}

function matches(stored: string | undefined, { fingerprint }: ClaimEntry): boolean {
  return (
    stored === undefined || fingerprint === undefined || stored === fingerprintCode(fingerprint)
  )
}

export function keyValues(
  entries: readonly { readonly key: ClaimEntry['key'] }[],
): readonly SqlValue[] {
  return [
    arrayLiteral(entries.map(({ key }) => escapeText(key.provider))),
    arrayLiteral(entries.map(({ key }) => escapeText(key.endpoint))),
    arrayLiteral(entries.map(({ key }) => escapeText(key.deliveryId))),
  ]
}

/** A retention in whole seconds, rounded up: a record is kept at least as long as was asked. */
export function keepSeconds(retentionMs: number): number {
  return Math.min(Math.ceil(retentionMs / 1000), 2_147_483_647)
}

function claimValues(entries: readonly AskedClaim[], hasPayloads: boolean): SqlValue[] {
  const column = (value: (entry: AskedClaim) => string | number | undefined) =>
    arrayLiteral(entries.map(value))
  const values = [
    ...keyValues(entries),
    column(({ token }) => tokenNumber(token)),
    column(({ leaseMs }) => leaseMs),
    column(flagsOf),
    column(({ unfinishedRetentionMs }) => keepSeconds(unfinishedRetentionMs)),
    column(({ maxAttempts }) => maxAttempts),
    column(({ fingerprint }) =>
      fingerprint === undefined ? undefined : fingerprintCode(fingerprint),
    ),
    column(({ event }) => (event === undefined ? undefined : escapeText(event))),
    column(({ action }) => (action === undefined ? undefined : escapeText(action))),
  ]
  if (!hasPayloads) return values
  const { bytes, starts, lengths } = pack(entries.map(({ payload }) => payload?.body))
  return [
    ...values,
    column(({ payload }) => (payload === undefined ? undefined : JSON.stringify(payload.headers))),
    arrayLiteral(starts),
    arrayLiteral(lengths),
    bytes,
  ]
}

function flagsOf({ key, mode, respectBackoff, redeliverDead }: AskedClaim): number {
  return (
    (mode === 'queued' ? flag.queued : 0) |
    (respectBackoff === true ? flag.respectsBackoff : 0) |
    (redeliverDead === true ? flag.redeliversDead : 0) |
    (isCanonicalUuid(key.deliveryId) ? flag.isUuid : 0)
  )
}

/** Reads one answer. `move` is what was done to the record, if anything; the other columns are the record since. */
function answerOf(row: SqlRow, entry: AskedClaim): ClaimAnswer {
  const fingerprint = optionalText(row, 'fingerprint')
  return {
    result: resultOf(row, entry, matches(fingerprint, entry)),
    holder: text(row, 'token'),
    fingerprint,
    hasPayload: row.has_payload === true,
  }
}

function resultOf(row: SqlRow, entry: AskedClaim, fingerprintMatches: boolean): ClaimResult {
  const move = optionalText(row, 'move')
  const state = text(row, 'state')
  if (move === 'new' && state === 'p') return { status: 'pending', fresh: true, fingerprintMatches }
  if (move === 'new' || move === 'own' || move === 'grant') {
    const fence = integer(row, 'fence')
    const attempt = integer(row, 'attempt')
    return { status: 'claimed', fence, attempt, leaseMs: entry.leaseMs, fingerprintMatches }
  }
  if (state === 'c') {
    const at = new Date(integer(row, 'updated_at'))
    const result = optionalBytes(row, 'result')
    return result === undefined
      ? { status: 'completed', at, fingerprintMatches }
      : { status: 'completed', at, result, fingerprintMatches }
  }
  if (state === 'd') return { status: 'dead', fingerprintMatches }
  const leftMs = (optionalInteger(row, 'until_at') ?? 0) - integer(row, 'now')
  if (state === 'r' && leftMs > 0)
    return { status: 'processing', leaseMs: leftMs, fingerprintMatches }
  return entry.mode === 'queued'
    ? { status: 'pending', fresh: false, fingerprintMatches }
    : { status: 'waiting', retryInMs: leftMs, fingerprintMatches }
}

/** For {@link createClaim}'s batch: bytes that an entry adds to the statement. */
export function claimSize({ payload }: AskedClaim): number {
  return payload?.body.length ?? 0
}

/** For the batch: which claims are of one key. */
export function claimKey({ key }: AskedClaim): string {
  return keyText(key)
}

function has(alias: string, name: keyof typeof flag): string {
  return `(${alias}.flags & ${flag[name]}) <> 0`
}

/**
 * What a claim does to a record: `new` (its retention is over: begin again), `own` (its holder asks again), `grant`,
 * `bury` (no attempts left), `store` (a queued copy brings bytes, or opens a dead record), `fill` (the first
 * fingerprint comes late); NULL: nothing, and the answer is what is there.
 * @param row alias of the record
 * @param ask alias of the entry
 * @param bringsPayload whether the entry has a payload, as SQL
 */
function moveOf(row: string, ask: string, bringsPayload: string): string {
  const isLive = `${row}.state = 'r' AND ${row}.until_at > ${ask}.now`
  const isOver = `${row}.due_at IS NULL AND ${row}.updated_at + ${row}.keep_s * 1000::bigint <= ${ask}.now`
  const fill = `CASE WHEN ${row}.fingerprint IS NULL AND ${ask}.fingerprint_hex IS NOT NULL THEN 'fill' END`
  return `CASE
      WHEN ${isOver} AND NOT (${isLive}) THEN 'new'
      WHEN ${row}.state = 'c' THEN NULL
      WHEN ${row}.state = 'r' AND ${row}.token = ${ask}.token THEN 'own'
      WHEN ${row}.state = 'd' AND NOT ${has(ask, 'redeliversDead')} THEN ${fill}
      WHEN ${has(ask, 'queued')} AND (${row}.state = 'd' OR ${bringsPayload} AND NOT ${row}.has_payload) THEN 'store'
      WHEN ${has(ask, 'queued')} OR ${isLive} THEN ${fill}
      WHEN ${row}.state NOT IN ('p', 'd') AND ${row}.attempt >= ${ask}.max_attempts THEN 'bury'
      WHEN ${row}.state = 'f' AND ${has(ask, 'respectsBackoff')} AND ${row}.until_at > ${ask}.now THEN ${fill}
      ELSE 'grant'
    END`
}

/**
 * `asked`: the entries. `seen`: what is there for each, read without a lock; where nothing is to be done, that is the
 * answer. `inserted`: records that were not there. `locked`, `moved`: records that a claim changes, judged again
 * under the lock. An entry that lost a race is in none of them.
 */
function claimText(tables: Tables, hasPayloads: boolean): string {
  const { records, contents, fences } = tables
  const all = hasPayloads ? [...columns, ...payloadColumns] : columns
  const brings = (alias: string) => (hasPayloads ? `${alias}.body_length IS NOT NULL` : 'false')
  const body = `substr($${all.length + 1}::bytea, ask.body_start, ask.body_length)`
  const grants = `(move.move IN ('own', 'grant') OR move.move = 'new' AND NOT ${has('move', 'queued')})`
  const opensDead = `(move.move = 'store' AND row.state = 'd')`
  const begins = `(move.move = 'new' OR move.move = 'grant' OR move.move = 'bury' OR ${opensDead})`
  const untilAt = `CASE
      WHEN ${grants} THEN move.now + move.lease
      WHEN move.move = 'bury' THEN NULL
      WHEN move.move = 'new' OR ${opensDead} THEN move.now
      ELSE row.until_at
    END`
  const hasPayload = `CASE
      WHEN move.move = 'new' THEN ${brings('move')}
      WHEN move.move = 'store' THEN row.has_payload OR ${brings('move')}
      ELSE row.has_payload
    END`
  const answer = (alias: string, move: string) => `${move} AS move, ${alias}.state::text AS state,
      ${alias}.until_at, ${alias}.fence, ${alias}.attempt, ${alias}.updated_at, ${alias}.token::text AS token,
      encode(${alias}.fingerprint, 'hex') AS fingerprint, ${alias}.has_payload`
  const returned =
    'key, state, until_at, fence, attempt, updated_at, token, fingerprint, has_payload'

  const storing = hasPayloads
    ? `, stored AS (
    INSERT INTO ${contents} (key, headers, body)
    SELECT ask.key, ask.headers, ${body}
    FROM asked AS ask
    WHERE ask.body_length IS NOT NULL AND (
      ask.key IN (SELECT key FROM inserted)
      OR ask.key IN (SELECT key FROM moved WHERE move = 'new' OR move = 'store' AND NOT had_payload)
    )
    ON CONFLICT (key) DO UPDATE SET
      headers = excluded.headers, body = excluded.body, result = NULL, payload_until = NULL
  )`
    : ''
  return `WITH ${askedRows(all)}, seen AS MATERIALIZED (
    SELECT ask.*, row.state, row.until_at, row.fence, row.attempt, row.updated_at, row.token AS holder,
      row.fingerprint, row.has_payload, row.has_result, row.key IS NOT NULL AS is_there,
      CASE WHEN row.key IS NOT NULL THEN ${moveOf('row', 'ask', brings('ask'))} END AS move
    FROM asked AS ask LEFT JOIN ${records} AS row ON row.key = ask.key
  ), inserted AS (
    INSERT INTO ${records} AS row (
      fence, token, created_at, updated_at, until_at, due_at, keep_s, attempt, state, has_payload, has_result, key,
      delivery_uuid, fingerprint, provider, endpoint, delivery_id, event, action
    )
    SELECT
      CASE WHEN ${has('ask', 'queued')} THEN 0 ELSE nextval('${fences}') END,
      ask.token, ask.now, ask.now,
      CASE WHEN ${has('ask', 'queued')} THEN ask.now ELSE ask.now + ask.lease END,
      CASE WHEN ${brings('ask')} THEN CASE WHEN ${has('ask', 'queued')} THEN ask.now ELSE ask.now + ask.lease END END,
      ask.keep_s,
      CASE WHEN ${has('ask', 'queued')} THEN 0 ELSE 1 END,
      CASE WHEN ${has('ask', 'queued')} THEN 'p' ELSE 'r' END::"char",
      ${brings('ask')}, false, ask.key,
      CASE WHEN ${has('ask', 'isUuid')} THEN ask.delivery_id::uuid END,
      decode(ask.fingerprint_hex, 'hex'), ask.provider, ask.endpoint,
      CASE WHEN NOT ${has('ask', 'isUuid')} THEN ask.delivery_id END,
      ask.event, ask.action
    FROM seen AS ask WHERE NOT ask.is_there
    ORDER BY ask.key
    ON CONFLICT (key) DO NOTHING
    RETURNING ${returned}
  ), locked AS (
    SELECT ask.n, ask.key, ask.now, ask.token, ask.lease, ask.flags, ask.keep_s, ask.fingerprint_hex, ask.event,
      ask.action, ${hasPayloads ? 'ask.body_length, ' : ''}row.has_payload AS had_payload, row.has_result AS had_result,
      ${moveOf('row', 'ask', brings('ask'))} AS move
    FROM seen AS ask JOIN ${records} AS row ON row.key = ask.key
    WHERE ask.move IS NOT NULL AND ${moveOf('row', 'ask', brings('ask'))} IS NOT NULL
    ORDER BY row.key
    FOR UPDATE OF row SKIP LOCKED
  ), moved AS (
    UPDATE ${records} AS row SET
      state = CASE
        WHEN ${grants} THEN 'r'
        WHEN move.move = 'new' THEN 'p'
        WHEN move.move = 'bury' THEN 'd'
        WHEN ${opensDead} THEN 'f'
        ELSE row.state
      END,
      token = CASE WHEN ${grants} THEN move.token ELSE row.token END,
      settled_by = CASE WHEN move.move IN ('new', 'grant', 'bury') THEN NULL ELSE row.settled_by END,
      fence = CASE WHEN ${grants} AND move.move <> 'own' THEN greatest(row.fence + 1, nextval('${fences}')) ELSE row.fence END,
      attempt = CASE
        WHEN move.move = 'new' THEN CASE WHEN ${has('move', 'queued')} THEN 0 ELSE 1 END
        WHEN move.move = 'grant' THEN CASE WHEN row.state = 'd' THEN 1 ELSE least(row.attempt + 1, 32767) END
        WHEN ${opensDead} THEN 0
        ELSE row.attempt
      END,
      created_at = CASE WHEN move.move = 'new' THEN move.now ELSE row.created_at END,
      updated_at = CASE WHEN ${begins} THEN move.now ELSE row.updated_at END,
      until_at = ${untilAt},
      due_at = CASE WHEN ${hasPayload} AND (row.state <> 'd' OR move.move <> 'fill') THEN ${untilAt} END,
      keep_s = CASE WHEN ${begins} THEN move.keep_s ELSE row.keep_s END,
      has_payload = ${hasPayload},
      has_result = row.has_result AND move.move <> 'new',
      fingerprint = CASE
        WHEN move.move = 'new' OR row.fingerprint IS NULL THEN decode(move.fingerprint_hex, 'hex')
        ELSE row.fingerprint
      END,
      event = CASE WHEN move.move = 'new' THEN move.event ELSE row.event END,
      action = CASE WHEN move.move = 'new' THEN move.action ELSE row.action END,
      code = CASE WHEN move.move = 'new' THEN NULL WHEN move.move = 'bury' THEN 'attempts_exhausted' ELSE row.code END
    FROM locked AS move WHERE row.key = move.key
    RETURNING move.n, move.now, move.move, move.had_payload, move.had_result, ${returned
      .split(', ')
      .map((column) => `row.${column}`)
      .join(', ')}
  ), cleared AS (
    DELETE FROM ${contents} AS content USING moved
    WHERE content.key = moved.key AND moved.move = 'new' AND (moved.had_payload OR moved.had_result) AND NOT moved.has_payload
  )${storing}
  SELECT ask.n, ask.now, ${answer('row', `'new'`)}, NULL::bytea AS result
  FROM inserted AS row JOIN asked AS ask ON ask.key = row.key
  UNION ALL
  SELECT row.n, row.now, ${answer('row', 'row.move')}, NULL::bytea FROM moved AS row
  UNION ALL
  SELECT ask.n, ask.now, NULL, ask.state::text, ask.until_at, ask.fence, ask.attempt, ask.updated_at, ask.holder::text,
    encode(ask.fingerprint, 'hex'), ask.has_payload,
    CASE WHEN ask.has_result THEN (SELECT result FROM ${contents} AS content WHERE content.key = ask.key) END
  FROM seen AS ask WHERE ask.is_there AND ask.move IS NULL`
}
