/** Claiming what is workable, for workers. */
import {
  type AttemptRecord,
  limitOption,
  type Store,
  type StoredPayload,
  type TakenDelivery,
} from '@webhook-inbox/core'
import { keepSeconds } from './claim.ts'
import type { Send, SqlRow } from './client.ts'
import { arrayLiteral, toHex, tokenNumber, unescapeText } from './encode.ts'
import { takeText } from './functions.ts'
import {
  boolean,
  integer,
  optionalBytes,
  optionalText,
  readAttempts,
  readKey,
  text,
} from './row.ts'
import type { Tables } from './schema.ts'

export type TakeOptions = Parameters<Store['take']>[0]

/** Claims what is workable. Takers never wait for each other: what one has locked, another passes over. */
export function createTake(
  tables: Tables,
): (send: Send, options: TakeOptions) => Promise<readonly TakenDelivery[]> {
  const call = takeText(tables)

  async function takeOnce(
    send: Send,
    limit: number,
    { leaseMs, maxAttempts, deadRetentionMs, deadBlocksOrder = false }: TakeOptions,
  ): Promise<{ readonly found: number; readonly taken: readonly TakenDelivery[] }> {
    const tokens = Array.from({ length: limit }, () =>
      toHex(crypto.getRandomValues(new Uint8Array(16))),
    )
    const rows = await send(call, [
      String(limit),
      String(leaseMs),
      arrayLiteral(tokens.map(tokenNumber)),
      maxAttempts === undefined ? null : String(maxAttempts),
      String(keepSeconds(deadRetentionMs)),
      String(deadBlocksOrder),
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
    // The owner that this very call has found lost is not in the log that it read.
    lostOwners: trailingLostOwners(readAttempts(row)) + (boolean(row, 'was_lost') ? 1 : 0),
    leaseMs,
    ...(event === undefined ? {} : { event: unescapeText(event) }),
    ...(action === undefined ? {} : { action: unescapeText(action) }),
    receivedAt: new Date(integer(row, 'created_at')),
    payload: payloadOf(row),
  }
}

function trailingLostOwners(attempts: readonly AttemptRecord[]): number {
  const other = attempts.findLastIndex(({ code }) => code !== 'lease_expired')
  return attempts.length - 1 - other
}

function payloadOf(row: SqlRow): StoredPayload {
  const headers: unknown = JSON.parse(text(row, 'headers'))
  const entries = typeof headers === 'object' && headers !== null ? Object.entries(headers) : []
  return {
    body: optionalBytes(row, 'body') ?? new Uint8Array(),
    headers: Object.fromEntries(entries.map(([name, value]) => [name, String(value)])),
  }
}
