import type { DeliveryKey, DeliveryState } from '@webhook-inbox/core'
import { integer, optionalInteger, optionalText, type SqlRow, text } from './statement.ts'

/** A record as the claim and the operator's questions read it. Times are epoch milliseconds of the store's clock. */
export interface RecordRow {
  readonly key: DeliveryKey
  readonly createdAtMs: number
  readonly event: string | undefined
  readonly action: string | undefined
  readonly unfinishedRetentionMs: number
  state: DeliveryState
  token: string
  fence: number
  attempt: number
  /** End of the lease (`processing`) or the next attempt time (`failed`, `pending`). */
  untilAtMs: number
  updatedAtMs: number
  purgeAtMs: number | undefined
  hasPayload: boolean
  fingerprint: string | undefined
  code: string | undefined
  /** The line it waits in, and its place there, which it gets when it is saved. */
  line: string | undefined
  place: number | undefined
}

/** The columns that {@link readRecord} needs. */
export const recordColumns = `id, provider, endpoint, delivery_id, state, token, fence, attempt, until_at, purge_at,
  unfinished_retention, has_payload, fingerprint, event, action, code, created_at,
  updated_at, line, place`

export function readRecord(row: SqlRow): RecordRow {
  return {
    key: {
      provider: text(row, 'provider'),
      endpoint: text(row, 'endpoint'),
      deliveryId: text(row, 'delivery_id'),
    },
    createdAtMs: integer(row, 'created_at'),
    event: optionalText(row, 'event'),
    action: optionalText(row, 'action'),
    unfinishedRetentionMs: integer(row, 'unfinished_retention'),
    state: readState(row),
    token: text(row, 'token'),
    fence: integer(row, 'fence'),
    attempt: integer(row, 'attempt'),
    untilAtMs: integer(row, 'until_at'),
    updatedAtMs: integer(row, 'updated_at'),
    purgeAtMs: optionalInteger(row, 'purge_at'),
    hasPayload: integer(row, 'has_payload') === 1,
    fingerprint: optionalText(row, 'fingerprint'),
    code: optionalText(row, 'code'),
    line: optionalText(row, 'line'),
    place: optionalInteger(row, 'place'),
  }
}

const states: readonly DeliveryState[] = ['pending', 'processing', 'completed', 'failed', 'dead']

export function readState(row: SqlRow): DeliveryState {
  const name = text(row, 'state')
  const state = states.find((known) => known === name)
  if (state === undefined) throw new TypeError(`Column "state" holds an unknown word.`)
  return state
}

/** The parameters that find a key. */
export function keyParameters(key: DeliveryKey): {
  readonly provider: string
  readonly endpoint: string
  readonly deliveryId: string
} {
  return { provider: key.provider, endpoint: key.endpoint, deliveryId: key.deliveryId }
}

/** The condition that finds a key. */
export const keyCondition =
  'provider = :provider AND endpoint = :endpoint AND delivery_id = :deliveryId'
