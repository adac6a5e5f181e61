import type { ClaimEntry, ClaimResult } from '@webhook-inbox/core'
import { createAttempts, lostOwner } from './attempts.ts'
import { keyCondition, keyParameters, type RecordRow, readRecord, recordColumns } from './row.ts'
import type { Tables } from './schema.ts'
import {
  type Connection,
  integer,
  inWriteTransaction,
  optionalBytes,
  statement,
} from './statement.ts'

/** Answers every entry, in order; entries of one call see the changes of those before them. */
export type ClaimAll = (
  connection: Connection,
  entries: readonly ClaimEntry[],
  nowMs: number,
) => readonly ClaimResult[]

type NotClaimed = Exclude<ClaimResult, { status: 'claimed' }>

/** An answer before the fence is known. */
type Answer = NotClaimed | { readonly status: 'claimed'; readonly fingerprintMatches: boolean }

/** What a claim does: to a record that stays as it is, or to `row`, the record as it has to be from now on. */
type Decision =
  | { readonly row: undefined; readonly answer: NotClaimed }
  | {
      readonly row: RecordRow
      readonly answer: Answer
      /** A record whose retention is over lay in the way. */
      readonly replaces?: boolean
      /** A new claim: needs the next fence. */
      readonly grants?: boolean
      /** The entry's payload becomes the record's. */
      readonly storesPayload?: boolean
      /** The claim before this one, whose owner was lost. */
      readonly lost?: RecordRow
    }

export function createClaim(tables: Tables): ClaimAll {
  const { records, contents, meta } = tables
  const find = statement(`
    SELECT ${recordColumns}, (
      SELECT result FROM ${contents} AS content
      WHERE content.id = ${records}.id AND ${records}.state = 'completed'
    ) AS result
    FROM ${records} WHERE ${keyCondition}`)
  const remove = statement(`DELETE FROM ${records} WHERE ${keyCondition}`)
  const save = statement(`
    INSERT INTO ${records} (
      provider, endpoint, delivery_id, state, token, fence, attempt, until_at, purge_at, unfinished_retention,
      has_payload, fingerprint, event, action, code, created_at, updated_at, line, place
    ) VALUES (
      :provider, :endpoint, :deliveryId, :state, :token, :fence, :attempt, :untilAt, :purgeAt, :unfinishedRetention,
      :hasPayload, :fingerprint, :event, :action, :code, :createdAt, :updatedAt, :line, :place
    )
    ON CONFLICT (provider, endpoint, delivery_id) DO UPDATE SET
      settled_by = CASE WHEN fence = excluded.fence THEN settled_by END,
      state = excluded.state, token = excluded.token, fence = excluded.fence, attempt = excluded.attempt,
      until_at = excluded.until_at, purge_at = excluded.purge_at, has_payload = excluded.has_payload,
      fingerprint = excluded.fingerprint, code = excluded.code, updated_at = excluded.updated_at,
      line = excluded.line, place = excluded.place
    RETURNING id`)
  const savePayload = statement(savePayloadText(tables))
  const nextPlace = statement(`UPDATE ${meta} SET last_place = last_place + 1 RETURNING last_place`)
  const attempts = createAttempts(tables)
  const nextFence = statement(nextFenceText(meta))

  function decideOne(connection: Connection, entry: ClaimEntry, nowMs: number): Decision {
    const found = connection.rows(find, keyParameters(entry.key))[0]
    if (found === undefined) return decide(undefined, undefined, entry, nowMs)
    return decide(readRecord(found), optionalBytes(found, 'result'), entry, nowMs)
  }

  function claimOne(connection: Connection, entry: ClaimEntry, nowMs: number): ClaimResult {
    const decision = decideOne(connection, entry, nowMs)
    if (decision.row === undefined) return decision.answer
    const { row, answer } = decision
    if (decision.replaces === true) connection.rows(remove, keyParameters(entry.key))
    if (decision.grants === true) {
      const floor = fenceFloor(row.fence, nowMs)
      const issued = connection.rows(nextFence, { floor })[0]
      if (issued === undefined) throw new TypeError(`Table ${meta} has lost its row.`)
      row.fence = integer(issued, 'last_fence')
    }
    if (row.line !== undefined && row.place === undefined) {
      const place = connection.rows(nextPlace, {})[0]
      if (place === undefined) throw new TypeError(`Table ${meta} has lost its row.`)
      row.place = integer(place, 'last_place')
    }
    const saved = connection.rows(save, {
      ...keyParameters(row.key),
      state: row.state,
      token: row.token,
      fence: row.fence,
      attempt: row.attempt,
      untilAt: row.untilAtMs,
      purgeAt: row.purgeAtMs ?? null,
      unfinishedRetention: row.unfinishedRetentionMs,
      hasPayload: row.hasPayload ? 1 : 0,
      fingerprint: row.fingerprint ?? null,
      event: row.event ?? null,
      action: row.action ?? null,
      code: row.code ?? null,
      createdAt: row.createdAtMs,
      updatedAt: row.updatedAtMs,
      line: row.line ?? null,
      place: row.place ?? null,
    })[0]
    if (decision.lost !== undefined && saved !== undefined)
      attempts.add(connection, integer(saved, 'id'), lostOwner(decision.lost))
    if (decision.storesPayload === true && entry.payload !== undefined && saved !== undefined) {
      connection.rows(savePayload, {
        id: integer(saved, 'id'),
        headers: JSON.stringify(entry.payload.headers),
        body: entry.payload.body,
      })
    }
    if (answer.status !== 'claimed') return answer
    const { fence, attempt } = row
    return { ...answer, fence, attempt, leaseMs: entry.leaseMs }
  }

  return (connection, entries, nowMs) => {
    // Copies of settled deliveries are answered without the write lock, and write nothing.
    const answers: ClaimResult[] = []
    for (const entry of entries) {
      const decision = decideOne(connection, entry, nowMs)
      if (decision.row !== undefined) break
      answers.push(decision.answer)
    }
    if (answers.length === entries.length) return answers
    return inWriteTransaction(connection, () =>
      entries.map((entry) => claimOne(connection, entry, nowMs)),
    )
  }
}

/** What a claim does to a record. Pure, so that it can be asked before the write lock is held and again under it. */
function decide(
  found: RecordRow | undefined,
  result: Uint8Array | undefined,
  entry: ClaimEntry,
  nowMs: number,
): Decision {
  // Expiry is judged here; purging is only housekeeping.
  if (found === undefined || hasExpired(found, nowMs)) {
    const row = newRow(entry, nowMs)
    const queued = entry.mode === 'queued'
    if (!queued) claimRow(row, entry, nowMs)
    return {
      answer: queued
        ? { status: 'pending', fresh: true, fingerprintMatches: true }
        : { status: 'claimed', fingerprintMatches: true },
      row,
      replaces: found !== undefined,
      grants: !queued,
      storesPayload: row.hasPayload,
    }
  }

  const fingerprintMatches =
    found.fingerprint === undefined ||
    entry.fingerprint === undefined ||
    found.fingerprint === entry.fingerprint
  if (found.state === 'completed') {
    const at = new Date(found.updatedAtMs)
    const answer = { status: 'completed', at, fingerprintMatches } as const
    return { row: undefined, answer: result === undefined ? answer : { ...answer, result } }
  }

  const row: RecordRow = { ...found, fingerprint: found.fingerprint ?? entry.fingerprint }
  const storesPayload = entry.mode === 'queued' && !found.hasPayload && entry.payload !== undefined
  const keep = (answer: NotClaimed): Decision =>
    storesPayload || row.fingerprint !== found.fingerprint || row.state !== found.state
      ? { row, answer, storesPayload }
      : { row: undefined, answer }

  if (row.state === 'processing' && row.token === entry.token) {
    row.untilAtMs = nowMs + entry.leaseMs
    return { row, answer: { status: 'claimed', fingerprintMatches } }
  }
  if (row.state === 'dead') {
    if (entry.redeliverDead !== true) return keep({ status: 'dead', fingerprintMatches })
    row.attempt = 0
    row.untilAtMs = nowMs
    moveTo(row, 'failed', nowMs)
  }

  // A copy brings the bytes that an inline claim did not keep: from here a worker can finish the work.
  if (storesPayload) {
    row.hasPayload = true
    row.purgeAtMs = undefined
    row.line = entry.order
  }
  // An inline claim of what waits in a line would overtake the others.
  if (entry.mode === 'queued' || row.line !== undefined) {
    if (!isHeldLive(row, nowMs))
      return keep({ status: 'pending', fresh: false, fingerprintMatches })
  }
  if (isHeldLive(row, nowMs))
    return keep({ status: 'processing', leaseMs: row.untilAtMs - nowMs, fingerprintMatches })
  const lost = found.state === 'processing' ? { lost: found } : {}
  const spent = entry.maxAttempts !== undefined && row.attempt >= entry.maxAttempts
  if (spent && row.state !== 'pending') {
    moveTo(row, 'dead', nowMs)
    row.code = 'attempts_exhausted'
    row.purgeAtMs = nowMs + (entry.deadRetentionMs ?? entry.unfinishedRetentionMs)
    return { row, answer: { status: 'dead', fingerprintMatches }, ...lost }
  }
  if (row.state === 'failed' && entry.respectBackoff === true && row.untilAtMs > nowMs)
    return keep({ status: 'waiting', retryInMs: row.untilAtMs - nowMs, fingerprintMatches })
  claimRow(row, entry, nowMs)
  return { row, answer: { status: 'claimed', fingerprintMatches }, grants: true, ...lost }
}

function newRow(entry: ClaimEntry, nowMs: number): RecordRow {
  const row: RecordRow = {
    key: entry.key,
    createdAtMs: nowMs,
    event: entry.event,
    action: entry.action,
    unfinishedRetentionMs: entry.unfinishedRetentionMs,
    state: 'pending',
    token: '',
    fence: 0,
    attempt: 0,
    untilAtMs: nowMs,
    updatedAtMs: nowMs,
    purgeAtMs: undefined,
    hasPayload: entry.payload !== undefined,
    fingerprint: entry.fingerprint,
    code: undefined,
    line: entry.mode === 'queued' && entry.payload !== undefined ? entry.order : undefined,
    place: undefined,
  }
  moveTo(row, 'pending', nowMs)
  return row
}

function claimRow(row: RecordRow, entry: ClaimEntry, nowMs: number): void {
  row.token = entry.token
  row.attempt += 1
  row.untilAtMs = nowMs + entry.leaseMs
  moveTo(row, 'processing', nowMs)
}

function moveTo(row: RecordRow, state: RecordRow['state'], nowMs: number): void {
  row.state = state
  row.updatedAtMs = nowMs
  // Work whose bytes are stored was answered 2xx: it is never purged before it is settled.
  row.purgeAtMs = row.hasPayload ? undefined : nowMs + row.unfinishedRetentionMs
}

function isHeldLive(row: RecordRow, nowMs: number): boolean {
  return row.state === 'processing' && row.untilAtMs > nowMs
}

function hasExpired(row: RecordRow, nowMs: number): boolean {
  return row.purgeAtMs !== undefined && row.purgeAtMs <= nowMs && !isHeldLive(row, nowMs)
}

/** Issues the next fence: above every one that was issued, whatever was purged since, and above `:floor`. */
export function nextFenceText(meta: string): string {
  return `UPDATE ${meta} SET last_fence = max(last_fence + 1, :floor) RETURNING last_fence`
}

/** The least that the next fence may be. Also above the clock, so that it grows when a file is lost or restored. */
export function fenceFloor(previous: number, nowMs: number): number {
  return Math.max(previous + 1, nowMs * 1000)
}

/** Stores the bytes of a request beside its record. */
export function savePayloadText({ contents }: Tables): string {
  return `INSERT INTO ${contents} (id, headers, body) VALUES (:id, :headers, :body)
    ON CONFLICT (id) DO UPDATE SET headers = excluded.headers, body = excluded.body`
}
