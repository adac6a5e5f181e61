/** Lines: of the records that wait in one, the first alone may be taken, and only while none of them runs. */

import { recordColumns } from './row.ts'
import type { Tables } from './schema.ts'
import {
  type Connection,
  integer,
  optionalInteger,
  type SqlRow,
  statement,
  text,
} from './statement.ts'
import type { TakeOptions } from './take.ts'

// How soon a line that a dead record stops is looked at again, when nothing moves in it.
const stoppedMs = 60_000

export interface Lines {
  /**
   * The records that may be taken now, at most `limit` lines of them. Inside a write transaction; the line of each is
   * looked at again as soon as its record has moved, or its lease would be over.
   */
  findHeads(
    connection: Connection,
    limit: number,
    options: TakeOptions,
    nowMs: number,
  ): readonly SqlRow[]
}

export function createLines({ records, lines }: Tables): Lines {
  const findDue = statement(
    `SELECT line FROM ${lines} WHERE due_at <= :now ORDER BY due_at, line LIMIT :limit`,
  )
  const put = statement(`UPDATE ${lines} SET due_at = :due WHERE line = :line`)
  const remove = statement(`DELETE FROM ${lines} WHERE line = :line`)
  const findHeld = statement(`
    SELECT max(until_at) AS until_at FROM ${records}
    WHERE line = :line AND line IS NOT NULL AND state = 'processing' AND until_at > :now`)
  const findFirst = statement(`
    SELECT ${recordColumns} FROM ${records}
    WHERE line = :line AND line IS NOT NULL AND state <> 'dead' ORDER BY place LIMIT 1`)
  const findDead = statement(`
    SELECT place FROM ${records}
    WHERE line = :line AND line IS NOT NULL AND state = 'dead' ORDER BY place LIMIT 1`)

  function findHead(
    connection: Connection,
    line: string,
    { leaseMs, deadBlocksOrder = false }: TakeOptions,
    nowMs: number,
  ): SqlRow | undefined {
    const lookAgainAt = (due: number): undefined => void connection.rows(put, { line, due })
    const held = connection.rows(findHeld, { line, now: nowMs })[0]
    const heldUntilMs = held === undefined ? undefined : optionalInteger(held, 'until_at')
    if (heldUntilMs !== undefined) return lookAgainAt(heldUntilMs)
    const first = connection.rows(findFirst, { line })[0]
    const dead = deadBlocksOrder ? connection.rows(findDead, { line })[0] : undefined
    if (
      dead !== undefined &&
      (first === undefined || integer(dead, 'place') < integer(first, 'place'))
    ) {
      return lookAgainAt(nowMs + stoppedMs)
    }
    if (first === undefined) return void connection.rows(remove, { line })
    const untilMs = integer(first, 'until_at')
    if (untilMs > nowMs) return lookAgainAt(untilMs)
    lookAgainAt(nowMs + leaseMs)
    return first
  }

  return {
    findHeads(connection, limit, options, nowMs) {
      for (;;) {
        const due = connection.rows(findDue, { now: nowMs, limit })
        const heads = due
          .map((row) => findHead(connection, text(row, 'line'), options, nowMs))
          .filter((row) => row !== undefined)
        // Lines without a head of now are due no more, so each round sees others.
        if (heads.length > 0 || due.length < limit) return heads
      }
    },
  }
}
