/** Claiming what is workable, for workers. */
import {
  limitOption,
  type Store,
  type StoredPayload,
  type TakenDelivery,
} from '@webhook-inbox/core'
import { keepSeconds } from './claim.ts'
import type { Send, SqlRow } from './client.ts'
import { arrayLiteral, toHex, tokenNumber, unescapeText } from './encode.ts'
import { boolean, integer, keyColumns, optionalBytes, optionalText, readKey, text } from './row.ts'
import type { Tables } from './schema.ts'
import { clock } from './sql.ts'

export type TakeOptions = Parameters<Store['take']>[0]

/** Claims what is workable. Takers never wait for each other: what one has locked, another passes over. */
export function createTake(
  tables: Tables,
): (send: Send, options: TakeOptions) => Promise<readonly TakenDelivery[]> {
  const { records, contents, fences } = tables
  const isSpent = `row.attempt >= $4::integer AND row.state <> 'p'`
  const takeText = `WITH clock AS MATERIALIZED ${clock}, due AS MATERIALIZED (
    SELECT row.key, coalesce(${isSpent}, false) AS is_spent, clock.now
    FROM ${records} AS row, clock WHERE row.due_at <= (SELECT now FROM clock)
    ORDER BY row.due_at LIMIT $1::integer
    FOR UPDATE OF row SKIP LOCKED
  ), numbered AS MATERIALIZED (
    SELECT due.*, row_number() OVER () AS n FROM due
  ), changed AS (
    UPDATE ${records} AS row SET
      state = CASE WHEN due.is_spent THEN 'd' ELSE 'r' END,
      settled_by = NULL,
      token = CASE WHEN due.is_spent THEN row.token ELSE ($3::text::bigint[])[due.n] END,
      fence = CASE WHEN due.is_spent THEN row.fence ELSE greatest(row.fence + 1, nextval('${fences}')) END,
      attempt = CASE WHEN due.is_spent THEN row.attempt ELSE least(row.attempt + 1, 32767) END,
      updated_at = due.now,
      until_at = CASE WHEN NOT due.is_spent THEN due.now + $2::bigint END,
      due_at = CASE WHEN NOT due.is_spent THEN due.now + $2::bigint END,
      keep_s = CASE WHEN due.is_spent THEN $5::integer ELSE row.keep_s END,
      code = CASE WHEN due.is_spent THEN 'attempts_exhausted' ELSE row.code END
    FROM numbered AS due WHERE row.key = due.key
    RETURNING due.n, due.is_spent, row.*
  )
  SELECT changed.n, changed.is_spent, ${keyColumns}, fence, attempt, event, action, created_at, headers, body
  FROM changed LEFT JOIN ${contents} AS content ON content.key = changed.key AND NOT changed.is_spent
  ORDER BY changed.n`

  async function takeOnce(
    send: Send,
    limit: number,
    { leaseMs, maxAttempts, deadRetentionMs }: TakeOptions,
  ): Promise<{ readonly found: number; readonly taken: readonly TakenDelivery[] }> {
    const tokens = Array.from({ length: limit }, () =>
      toHex(crypto.getRandomValues(new Uint8Array(16))),
    )
    const rows = await send(takeText, [
      String(limit),
      String(leaseMs),
      arrayLiteral(tokens.map(tokenNumber)),
      maxAttempts === undefined ? null : String(maxAttempts),
      String(keepSeconds(deadRetentionMs)),
    ])
    const taken = rows
      .filter((row) => !boolean(row, 'is_spent'))
      .map((row) => deliveryOf(row, tokens[integer(row, 'n') - 1] ?? '', leaseMs))
    return { found: rows.length, taken }
  }

  return async (send, options) => {
    limitOption('take', options.limit, 1000)
    const taken: TakenDelivery[] = []
    for (;;) {
      const wanted = options.limit - taken.length
      if (wanted <= 0) return taken
      const round = await takeOnce(send, wanted, options)
      taken.push(...round.taken)
      // Neither what was taken nor what was buried is due any more, so each round sees new records.
      if (round.found < wanted) return taken
    }
  }
}

function deliveryOf(row: SqlRow, token: string, leaseMs: number): TakenDelivery {
  const event = optionalText(row, 'event')
  const action = optionalText(row, 'action')
  return {
    hold: { key: readKey(row), token, fence: integer(row, 'fence') },
    attempt: integer(row, 'attempt'),
    leaseMs,
    ...(event === undefined ? {} : { event: unescapeText(event) }),
    ...(action === undefined ? {} : { action: unescapeText(action) }),
    receivedAt: new Date(integer(row, 'created_at')),
    payload: payloadOf(row),
  }
}

function payloadOf(row: SqlRow): StoredPayload {
  const headers: unknown = JSON.parse(text(row, 'headers'))
  const entries = typeof headers === 'object' && headers !== null ? Object.entries(headers) : []
  return {
    body: optionalBytes(row, 'body') ?? new Uint8Array(),
    headers: Object.fromEntries(entries.map(([name, value]) => [name, String(value)])),
  }
}
