/** Proving at setup that the database does what the store relies on. */
import { type DeliveryKey, type Store, WebhookInboxError } from '@webhook-inbox/core'
import { keyValues } from './claim.ts'
import { isPool, type PostgresClient, type Send } from './client.ts'
import { boolean, integer, text } from './row.ts'
import type { Tables } from './schema.ts'
import { askedRows, keyColumns } from './sql.ts'

const oldestVersion = 130_000

/** Asks what the server is. @throws WebhookInboxError `ERR_STORE_SETUP` when the store cannot work on it */
export async function checkServer(
  send: Send,
  timeoutMs: number,
  warn: (message: string) => void,
): Promise<void> {
  const [row] = await send(`SELECT
    current_setting('server_version_num')::integer AS version,
    current_setting('server_encoding') AS encoding,
    pg_is_in_recovery() AS is_replica,
    current_setting('transaction_read_only') = 'on' AS is_read_only,
    current_setting('transaction_isolation') AS isolation,
    current_setting('synchronous_commit') AS commits,
    (SELECT setting::integer FROM pg_settings WHERE name = 'statement_timeout') AS statement_timeout`)
  if (row === undefined) throw setupError('The client answered a question with no row.')
  if (integer(row, 'version') < oldestVersion)
    throw setupError('The store needs PostgreSQL 13 or newer.')
  if (text(row, 'encoding') !== 'UTF8')
    throw setupError(
      `The database has the encoding ${text(row, 'encoding')}. Use one that was created with ENCODING 'UTF8'.`,
    )
  if (boolean(row, 'is_replica'))
    throw setupError('The client is connected to a read-only replica. Connect it to the primary.')
  if (boolean(row, 'is_read_only'))
    throw setupError(
      'Transactions of this client are read-only. Turn default_transaction_read_only off for its role, or connect to the primary.',
    )
  if (text(row, 'isolation') !== 'read committed')
    throw setupError(
      `Transactions of this client are "${text(row, 'isolation')}"; the store needs "read committed". Give it a role or pool of its own with default_transaction_isolation = 'read committed'.`,
    )
  if (text(row, 'commits') === 'off')
    warn(
      'synchronous_commit is off: when the server crashes, deliveries that were answered with 2xx can be lost. Turn it on for this role.',
    )
  const statementTimeoutMs = integer(row, 'statement_timeout')
  if (statementTimeoutMs === 0 || statementTimeoutMs > timeoutMs)
    warn(
      `statement_timeout is ${statementTimeoutMs === 0 ? 'off' : `${statementTimeoutMs} ms`}: a statement that the store has given up on can go on in the server. Set it to ${timeoutMs} ms or less: ALTER ROLE … SET statement_timeout = '${timeoutMs}ms', or statement_timeout: ${timeoutMs} for a pg Pool.`,
    )
}

/** Warns of a `pg` Pool that would not be well again soon after the network was broken. */
export function checkPool(
  client: PostgresClient,
  timeoutMs: number,
  warn: (message: string) => void,
): void {
  if (isPool(client) && client.options && (client.options.connectionTimeoutMillis ?? 0) === 0)
    warn(
      `The pool has no connectionTimeoutMillis: an attempt to connect that nobody answers keeps its place, and when all places are taken nothing gets through, also after the database is back. Set it to ${timeoutMs} or less.`,
    )
}

/**
 * Runs one throw-away delivery through its life, and removes it.
 * @throws WebhookInboxError `ERR_STORE_SETUP` when an answer is not the one that has to come
 */
export async function checkStore(store: Store, send: Send, tables: Tables): Promise<void> {
  const key: DeliveryKey = {
    provider: 'webhook-inbox',
    endpoint: 'self-check \u0000 ☕',
    deliveryId: crypto.randomUUID(),
  }
  const leaseMs = 60_000
  const entry = { key, leaseMs, mode: 'inline', unfinishedRetentionMs: 60_000 } as const
  const claim = async (token: string) => (await store.claim([{ ...entry, token }]))[0]
  try {
    const answers = await Promise.all(['a', 'b'].map(claim))
    const [winner] = answers.flatMap((answer, index) =>
      answer?.status === 'claimed' ? [{ answer, token: index === 0 ? 'a' : 'b' }] : [],
    )
    expectThat(winner !== undefined && answers.filter(isProcessing).length === 1, 'claim')
    const again = await claim(winner.token)
    expectThat(again?.status === 'claimed' && again.fence === winner.answer.fence, 'claim again')
    const other = await claim('other')
    expectThat(
      other?.status === 'processing' && other.leaseMs > 0 && other.leaseMs <= leaseMs,
      'tell time',
    )
    const hold = { key, token: winner.token, fence: winner.answer.fence }
    expectThat((await store.renew(hold, leaseMs)) === 'ok', 'renew')
    const result = new Uint8Array([0, 255, 92, 39])
    expectThat((await store.complete(hold, { retentionMs: 60_000, result })) === 'ok', 'complete')
    const copy = await claim('copy')
    expectThat(
      copy?.status === 'completed' && String(copy.result) === String(result),
      'give back the bytes of a result',
    )
    expectThat((await store.get(key))?.key.endpoint === key.endpoint, 'give back text')
  } finally {
    const removeText = (table: string) =>
      `WITH ${askedRows(keyColumns)} DELETE FROM ${table} AS row USING asked WHERE row.key = asked.key`
    await send(removeText(tables.records), keyValues([{ key }]))
    await send(removeText(tables.contents), keyValues([{ key }]))
  }
}

function isProcessing(answer: { readonly status: string } | undefined): boolean {
  return answer?.status === 'processing'
}

function expectThat(holds: boolean, what: string): asserts holds {
  if (holds) return
  throw setupError(
    `The self-check failed: the database did not ${what} as it must. Is "pool" a client that runs each statement once, in a transaction of its own, on the primary?`,
  )
}

function setupError(message: string): WebhookInboxError {
  return new WebhookInboxError('ERR_STORE_SETUP', message)
}
