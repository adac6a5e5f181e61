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
import { callText, flag } from './functions.ts'
import { boolean, integer, optionalBytes, optionalText, text } from './row.ts'
import type { Tables } from './schema.ts'

/** A claim that waits to be sent, its buffers copied; `rank` grows in the order in which those of lines came. */
export type AskedClaim = ClaimEntry & { readonly rank?: number }

/** What became of a claim, and of whom the record is now: enough to answer a copy that came with it. */
export interface ClaimAnswer {
  readonly result: ClaimResult
  /** Number of the token that holds the record, while somebody does. */
  readonly holder: string | undefined
  /** Code of the fingerprint that the record has. */
  readonly fingerprint: string | undefined
  readonly hasPayload: boolean
}

/** How long the holder of a locked row is said to have it: its own lease cannot be read. */
const lockedLeaseMs = 1000

/**
 * Answers a batch of entries, no two of one key. A row that another transaction has locked is not waited for: it is
 * somebody's at this moment.
 */
export function createClaim(
  tables: Tables,
): (send: Send, entries: readonly AskedClaim[]) => Promise<readonly ClaimAnswer[]> {
  const text = callText(tables, 'claim')

  async function ask(
    send: Send,
    entries: readonly AskedClaim[],
  ): Promise<ReadonlyMap<number, ClaimAnswer>> {
    const rows = await send(text, claimValues(entries))
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
  holder: undefined,
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

function claimValues(entries: readonly AskedClaim[]): SqlValue[] {
  const column = (value: (entry: AskedClaim) => string | number | undefined) =>
    arrayLiteral(entries.map(value))
  const { bytes, starts, lengths } = pack(entries.map(({ payload }) => payload?.body))
  return [
    ...keyValues(entries),
    column(({ token }) => tokenNumber(token)),
    column(({ leaseMs }) => leaseMs),
    column(flagsOf),
    column(({ unfinishedRetentionMs }) => keepSeconds(unfinishedRetentionMs)),
    column(({ deadRetentionMs, unfinishedRetentionMs }) =>
      keepSeconds(deadRetentionMs ?? unfinishedRetentionMs),
    ),
    column(({ maxAttempts }) => maxAttempts),
    column(({ fingerprint }) =>
      fingerprint === undefined ? undefined : fingerprintCode(fingerprint),
    ),
    column(({ event }) => (event === undefined ? undefined : escapeText(event))),
    column(({ action }) => (action === undefined ? undefined : escapeText(action))),
    column(({ payload }) => (payload === undefined ? undefined : JSON.stringify(payload.headers))),
    column(({ mode, order }) =>
      mode === 'queued' && order !== undefined ? escapeText(order) : undefined,
    ),
    column(({ rank }) => rank),
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
  const asked = entry.fingerprint === undefined ? undefined : fingerprintCode(entry.fingerprint)
  const fingerprint = optionalText(row, 'fingerprint') ?? asked
  return {
    result: resultOf(row, entry, asked === undefined || fingerprint === asked),
    holder: optionalText(row, 'holder'),
    fingerprint,
    hasPayload: boolean(row, 'has_payload'),
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
  if (state === 'd') return { status: 'dead', fingerprintMatches }
  const moment = integer(row, 'moment')
  if (state === 'c') {
    const at = new Date(moment)
    const result = optionalBytes(row, 'result')
    return result === undefined
      ? { status: 'completed', at, fingerprintMatches }
      : { status: 'completed', at, result, fingerprintMatches }
  }
  if (state === 'r' && moment > 0)
    return { status: 'processing', leaseMs: moment, fingerprintMatches }
  // What waits in a line is not for an inline claim.
  return entry.mode === 'queued' || move === 'wait' || move === 'store'
    ? { status: 'pending', fresh: false, fingerprintMatches }
    : { status: 'waiting', retryInMs: moment, fingerprintMatches }
}

/** For {@link createClaim}'s batch: bytes that an entry adds to the statement. */
export function claimSize({ payload }: AskedClaim): number {
  return payload?.body.length ?? 0
}

/** For the batch: which claims are of one key. */
export function claimKey({ key }: AskedClaim): string {
  return keyText(key)
}
