import type {
  CompleteOptions,
  DeliveryKey,
  FailOptions,
  Hold,
  RenewResult,
  SettleResult,
  StoredPayload,
} from '@webhook-inbox/core'
import { createAttempts } from './attempts.ts'
import { savePayloadText } from './claim.ts'
import { keyCondition, keyParameters } from './row.ts'
import type { Tables } from './schema.ts'
import { type Connection, integer, type SqlValue, statement } from './statement.ts'

/** What the holder of a claim can do. Each runs inside a transaction that the caller of these has opened. */
export interface Settling {
  renew(connection: Connection, hold: Hold, leaseMs: number, nowMs: number): RenewResult
  complete(
    connection: Connection,
    hold: Hold,
    options: CompleteOptions,
    nowMs: number,
  ): SettleResult
  fail(connection: Connection, hold: Hold, options: FailOptions, nowMs: number): SettleResult
  release(connection: Connection, hold: Hold, nowMs: number): SettleResult
  abandon(connection: Connection, key: DeliveryKey, token: string, nowMs: number): void
}

export function createSettling(tables: Tables): Settling {
  const { records, contents } = tables
  // State, token and fence guard every one of these, never the lease time.
  const ofToken = `${keyCondition} AND token = :token`
  const ofHold = `${ofToken} AND fence = :fence`
  const held = `${ofHold} AND state = 'processing'`

  const extend = statement(`
    UPDATE ${records} SET
      until_at = :now + :lease,
      purge_at = CASE WHEN has_payload THEN NULL ELSE :now + unfinished_retention END
    WHERE ${held} RETURNING id`)
  const finish = statement(`
    UPDATE ${records} SET
      state = 'completed', code = NULL, line = NULL, place = NULL, updated_at = :now, purge_at = :now + :retention,
      has_payload = has_payload AND :payloadRetention IS NOT NULL,
      payload_until_at = CASE WHEN has_payload THEN :now + :payloadRetention END
    WHERE ${held} RETURNING id`)
  const dropContent = statement(`DELETE FROM ${contents} WHERE id = :id`)
  const saveResult = statement(`
    INSERT INTO ${contents} (id, result) VALUES (:id, :result)
    ON CONFLICT (id) DO UPDATE SET result = excluded.result`)
  const savePayload = statement(savePayloadText(tables))
  const attempts = createAttempts(tables)
  const findPayloadPlace = statement(`SELECT id, has_payload FROM ${records} WHERE ${held}`)
  const failLater = statement(`
    UPDATE ${records} SET
      state = 'failed', settled_by = 'fail', code = :code, updated_at = :now, until_at = :now + :retryIn,
      has_payload = has_payload OR :bringsPayload,
      purge_at = CASE WHEN has_payload OR :bringsPayload THEN NULL ELSE :now + :retention END
    WHERE ${held} RETURNING id, attempt`)
  const bury = statement(`
    UPDATE ${records} SET
      state = 'dead', settled_by = 'fail', code = :code, updated_at = :now, purge_at = :now + :retention,
      has_payload = has_payload OR :bringsPayload
    WHERE ${held} RETURNING id, attempt`)
  const giveBackText = `
    UPDATE ${records} SET
      state = CASE WHEN has_payload THEN 'pending' ELSE 'failed' END, settled_by = 'release',
      attempt = attempt - 1, until_at = :now, updated_at = :now,
      purge_at = CASE WHEN has_payload THEN NULL ELSE :now + unfinished_retention END`
  const giveBack = statement(`${giveBackText} WHERE ${held} RETURNING id`)
  const giveBackUnseen = statement(`${giveBackText} WHERE ${ofToken} AND state = 'processing'`)
  const findSettled = statement(`
    SELECT 1 FROM ${records}
    WHERE ${ofHold} AND :operation = CASE state WHEN 'completed' THEN 'complete' ELSE settled_by END`)

  // A resent command: this token has settled the record by the same operation before.
  function missed(
    connection: Connection,
    hold: Hold,
    operation: 'complete' | 'fail' | 'release',
  ): SettleResult {
    const found = connection.rows(findSettled, { ...holdParameters(hold), operation })
    return found.length > 0 ? 'already' : 'lost'
  }

  // Bytes that came with the first claim are the ones that were acknowledged: a failure never replaces them.
  function storeMissingPayload(
    connection: Connection,
    hold: Hold,
    payload: StoredPayload | undefined,
  ): boolean {
    if (payload === undefined) return false
    const place = connection.rows(findPayloadPlace, holdParameters(hold))[0]
    if (place === undefined || integer(place, 'has_payload') === 1) return false
    connection.rows(savePayload, {
      id: integer(place, 'id'),
      headers: JSON.stringify(payload.headers),
      body: payload.body,
    })
    return true
  }

  return {
    renew(connection, hold, leaseMs, nowMs) {
      const parameters = { ...holdParameters(hold), now: nowMs, lease: leaseMs }
      return connection.rows(extend, parameters).length > 0 ? 'ok' : 'lost'
    },

    complete(connection, hold, { retentionMs, payloadRetentionMs, result }, nowMs) {
      const finished = connection.rows(finish, {
        ...holdParameters(hold),
        now: nowMs,
        retention: retentionMs,
        payloadRetention: payloadRetentionMs ?? null,
      })[0]
      if (finished === undefined) return missed(connection, hold, 'complete')
      const id = integer(finished, 'id')
      if (payloadRetentionMs === undefined) connection.rows(dropContent, { id })
      if (result !== undefined) connection.rows(saveResult, { id, result })
      return 'ok'
    },

    fail(connection, hold, options, nowMs) {
      const bringsPayload = storeMissingPayload(connection, hold, options.payload)
      const parameters = {
        ...holdParameters(hold),
        now: nowMs,
        code: options.code,
        retention: options.retentionMs,
        bringsPayload: bringsPayload ? 1 : 0,
      }
      const [changed] =
        options.dead === true
          ? connection.rows(bury, parameters)
          : connection.rows(failLater, { ...parameters, retryIn: options.retryInMs })
      if (changed === undefined) return missed(connection, hold, 'fail')
      const { code, durationMs } = options
      const ended = { attempt: integer(changed, 'attempt'), endedAt: new Date(nowMs), code }
      attempts.add(
        connection,
        integer(changed, 'id'),
        durationMs === undefined ? ended : { ...ended, durationMs },
      )
      return 'ok'
    },

    release(connection, hold, nowMs) {
      const parameters = { ...holdParameters(hold), now: nowMs }
      if (connection.rows(giveBack, parameters).length > 0) return 'ok'
      return missed(connection, hold, 'release')
    },

    abandon(connection, key, token, nowMs) {
      connection.rows(giveBackUnseen, { ...keyParameters(key), token, now: nowMs })
    },
  }
}

function holdParameters(hold: Hold): Readonly<Record<string, SqlValue>> {
  return { ...keyParameters(hold.key), token: hold.token, fence: hold.fence }
}
