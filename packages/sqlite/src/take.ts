import {
  limitOption,
  type Store,
  type StoredPayload,
  type TakenDelivery,
} from '@webhook-inbox/core'
import { createAttempts, lostOwner, lostOwnersOf } from './attempts.ts'
import { fenceFloor, nextFenceText } from './claim.ts'
import { createLines } from './lines.ts'
import { readRecord, recordColumns } from './row.ts'
import type { Tables } from './schema.ts'
import {
  type Connection,
  integer,
  optionalBytes,
  type SqlRow,
  statement,
  text,
} from './statement.ts'

export type TakeOptions = Parameters<Store['take']>[0]

/** Claims what is workable. Runs inside a write transaction, so that no two takers get the same. */
export type Take = (
  connection: Connection,
  options: TakeOptions,
  nowMs: number,
) => readonly TakenDelivery[]

export function createTake(tables: Tables): Take {
  const { records, contents, meta } = tables
  const findDue = statement(`
    SELECT ${recordColumns} FROM ${records} WHERE due_at <= :now ORDER BY due_at, id LIMIT :limit`)
  const grant = statement(`
    UPDATE ${records} SET
      state = 'processing', token = :token, settled_by = NULL, fence = :fence, attempt = attempt + 1,
      until_at = :now + :lease, updated_at = :now, purge_at = NULL
    WHERE id = :id`)
  const bury = statement(`
    UPDATE ${records} SET
      state = 'dead', code = 'attempts_exhausted', updated_at = :now, purge_at = :now + :retention
    WHERE id = :id`)
  const findPayload = statement(`SELECT headers, body FROM ${contents} WHERE id = :id`)
  const nextFence = statement(nextFenceText(meta))
  const attempts = createAttempts(tables)
  const lines = createLines(tables)

  function takeOne(
    connection: Connection,
    found: SqlRow,
    { leaseMs, maxAttempts, deadRetentionMs }: TakeOptions,
    nowMs: number,
  ): TakenDelivery | undefined {
    const id = integer(found, 'id')
    const row = readRecord(found)
    if (row.state === 'processing') attempts.add(connection, id, lostOwner(row))
    if (maxAttempts !== undefined && row.attempt >= maxAttempts && row.state !== 'pending') {
      connection.rows(bury, { id, now: nowMs, retention: deadRetentionMs })
      return undefined
    }
    const token = crypto.randomUUID()
    const issued = connection.rows(nextFence, { floor: fenceFloor(row.fence, nowMs) })[0]
    const content = connection.rows(findPayload, { id })[0]
    if (issued === undefined || content === undefined)
      throw new TypeError(`The tables of ${records} do not belong together.`)
    const fence = integer(issued, 'last_fence')
    connection.rows(grant, { id, token, fence, now: nowMs, lease: leaseMs })
    return {
      hold: { key: row.key, token, fence },
      attempt: row.attempt + 1,
      lostOwners: lostOwnersOf(attempts.read(connection, id)),
      leaseMs,
      ...(row.event === undefined ? {} : { event: row.event }),
      ...(row.action === undefined ? {} : { action: row.action }),
      receivedAt: new Date(row.createdAtMs),
      payload: readPayload(content),
    }
  }

  return (connection, options, nowMs) => {
    limitOption('take', options.limit, 1000)
    const taken: TakenDelivery[] = []
    for (;;) {
      const wanted = options.limit - taken.length
      // Neither what was taken nor what was buried is due any more, so each round sees new records.
      const due = wanted > 0 ? connection.rows(findDue, { now: nowMs, limit: wanted }) : []
      for (const found of due) {
        const delivery = takeOne(connection, found, options, nowMs)
        if (delivery !== undefined) taken.push(delivery)
      }
      if (wanted <= 0) return taken
      if (due.length < wanted) break
    }
    for (;;) {
      const wanted = options.limit - taken.length
      const heads = wanted > 0 ? lines.findHeads(connection, wanted, options, nowMs) : []
      if (heads.length === 0) return taken
      for (const found of heads) {
        const delivery = takeOne(connection, found, options, nowMs)
        if (delivery !== undefined) taken.push(delivery)
      }
    }
  }
}

function readPayload(row: SqlRow): StoredPayload {
  const headers: unknown = JSON.parse(text(row, 'headers'))
  const entries = typeof headers === 'object' && headers !== null ? Object.entries(headers) : []
  return {
    body: optionalBytes(row, 'body') ?? new Uint8Array(),
    headers: Object.fromEntries(entries.map(([name, value]) => [name, String(value)])),
  }
}
