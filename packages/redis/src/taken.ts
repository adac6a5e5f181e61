import type { StoredPayload, TakenDelivery } from '@webhook-inbox/core'
import { readAttempts, unpackAbout, unpackHeaders, unpackKey } from './encoding.ts'
import { listOf, textOf } from './script.ts'

/** Reads what a script tells of a record that it has granted. */
export function readTaken(row: unknown, token: string, leaseMs: number): TakenDelivery {
  const [fence, attempt, created, names, about, body, headers, log] = listOf(row)
  const attempts = readAttempts(textOf(log))
  const other = attempts.findLastIndex(({ code }) => code !== 'lease_expired')
  return {
    hold: { key: unpackKey(textOf(names)), token, fence: Number(textOf(fence)) },
    attempt: Number(textOf(attempt)),
    lostOwners: attempts.length - 1 - other,
    leaseMs,
    ...unpackAbout(textOf(about)),
    receivedAt: new Date(Number(textOf(created))),
    payload: payloadOf(body, headers),
  }
}

function payloadOf(body: unknown, headers: unknown): StoredPayload {
  if (!Buffer.isBuffer(body)) throw new TypeError('A record that is due has lost its bytes.')
  return { body: new Uint8Array(body), headers: unpackHeaders(textOf(headers)) }
}
