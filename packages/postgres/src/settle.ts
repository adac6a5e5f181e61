/** What the holder of a claim can do: renew, complete, fail, release. */
import type {
  CompleteOptions,
  DeliveryKey,
  FailOptions,
  Hold,
  RenewResult,
  SettleResult,
} from '@webhook-inbox/core'
import { pack } from './bytes.ts'
import { keepSeconds, keyValues } from './claim.ts'
import type { Send, SqlValue } from './client.ts'
import { arrayLiteral, escapeText, tokenNumber } from './encode.ts'
import { integer, text } from './row.ts'
import type { Tables } from './schema.ts'
import { askedRows, type Column, holdColumns, keyColumns } from './sql.ts'

export interface AskedRenewal {
  readonly hold: Hold
  readonly leaseMs: number
}

export interface AskedCompletion {
  readonly hold: Hold
  readonly options: CompleteOptions
}

export interface AskedFailure {
  readonly hold: Hold
  readonly options: FailOptions
}

/** `busy`: another transaction has the row; ask alone, and wait. */
export type Busy = 'busy'

/** One of the operations, on a batch of holds, no two of one key. */
export interface Settling<Asked, Result> {
  /** Answers at once, whatever others have locked. */
  ask(send: Send, asked: readonly Asked[]): Promise<readonly (Result | Busy)[]>
  /** Waits for the row. */
  wait(send: Send, asked: Asked): Promise<Result>
}

export interface Settlings {
  readonly renew: Settling<AskedRenewal, RenewResult>
  readonly complete: Settling<AskedCompletion, SettleResult>
  readonly fail: Settling<AskedFailure, SettleResult>
  readonly release: Settling<{ readonly hold: Hold }, SettleResult>
  abandon(send: Send, key: DeliveryKey, token: string): Promise<void>
}

/** How one operation is written. In its SQL `row` is the record and `ask` the entry. */
interface Operation<Asked> {
  /** Columns of an entry behind those of its hold. */
  readonly columns: readonly Column[]
  values(asked: readonly Asked[]): readonly SqlValue[]
  /** The bytes of an entry, for the columns `bytes_start` and `bytes_length`. */
  bytes?(asked: Asked): Uint8Array | undefined
  readonly set: string
  /** The letter by which a record tells that this very token has done it before. */
  readonly letter?: 'c' | 'f' | 'r'
  /** More to be done for the rows in `locked`; `bytes` is the piece of an entry. */
  after?(bytes: string): readonly string[]
}

const bytesColumns: readonly Column[] = [
  ['bytes_start', 'integer'],
  ['bytes_length', 'integer'],
]

export function createSettlings(tables: Tables): Settlings {
  const { records, contents } = tables

  function settling<Asked extends { readonly hold: Hold }>(
    operation: Operation<Asked>,
  ): Settling<Asked, SettleResult> {
    const ask = writer(operation, 'FOR UPDATE OF row SKIP LOCKED')
    const wait = writer(operation, 'FOR UPDATE OF row')
    return {
      ask,
      async wait(send, asked) {
        // A row that changed while it was waited for is read anew: then the answer is final.
        for (let round = 0; round < 3; round++) {
          const [answer] = await wait(send, [asked])
          if (answer !== undefined && answer !== 'busy') return answer
        }
        return 'lost'
      },
    }
  }

  function writer<Asked extends { readonly hold: Hold }>(
    operation: Operation<Asked>,
    lock: string,
  ): (send: Send, asked: readonly Asked[]) => Promise<readonly (SettleResult | Busy)[]> {
    const plain = settleText(operation, lock, false)
    const withBytes = settleText(operation, lock, true)
    return async (send, asked) => {
      const { bytes, starts, lengths } = pack(asked.map((one) => operation.bytes?.(one)))
      const hasBytes = lengths.some((length) => length !== undefined)
      const rows = await send(hasBytes ? withBytes : plain, [
        ...keyValues(asked.map(({ hold }) => hold)),
        arrayLiteral(asked.map(({ hold }) => tokenNumber(hold.token))),
        arrayLiteral(asked.map(({ hold }) => hold.fence)),
        ...operation.values(asked),
        ...(hasBytes ? [arrayLiteral(starts), arrayLiteral(lengths), bytes] : []),
      ])
      const answers = new Map(rows.map((row) => [integer(row, 'n') - 1, text(row, 'answer')]))
      return asked.map((_, index) => answerOf(answers.get(index)))
    }
  }

  /**
   * `seen`: the records of the holds, read without a lock. `locked`: those that are still held, in the order of
   * their keys. State, token and fence guard every one, never the lease time.
   */
  function settleText<Asked>(
    { columns, set, letter, after }: Operation<Asked>,
    lock: string,
    hasBytes: boolean,
  ): string {
    const all = [...holdColumns, ...columns, ...(hasBytes ? bytesColumns : [])]
    const piece = `substr($${all.length + 1}::bytea, ask.bytes_start, ask.bytes_length)`
    const own = 'row.key = ask.key AND row.token = ask.token AND row.fence = ask.fence'
    const noBytes = hasBytes ? '' : ', NULL::integer AS bytes_length'
    const rest = after?.(hasBytes ? piece : 'NULL::bytea') ?? []
    return `WITH ${askedRows(all)}, seen AS MATERIALIZED (
    SELECT ask.*${noBytes}, row.state, CASE row.state WHEN 'c' THEN 'c' ELSE row.settled_by END AS settled_by
    FROM asked AS ask LEFT JOIN ${records} AS row ON ${own}
  ), locked AS MATERIALIZED (
    SELECT ask.*, row.has_payload AS had_payload
    FROM seen AS ask JOIN ${records} AS row ON ${own}
    WHERE ask.state = 'r' AND row.state = 'r'
    ORDER BY row.key
    ${lock}
  ), changed AS (
    UPDATE ${records} AS row SET ${set} FROM locked AS ask WHERE row.key = ask.key RETURNING row.key
  )${rest.map((statement, index) => `, after_${index} AS (${statement})`).join('')}
  SELECT ask.n, CASE
      WHEN changed.key IS NOT NULL THEN 'ok'
      WHEN ask.state = 'r' THEN 'busy'
      WHEN ask.settled_by = ${letter === undefined ? 'NULL' : `'${letter}'`} THEN 'already'
      ELSE 'lost'
    END AS answer
  FROM seen AS ask LEFT JOIN changed ON changed.key = ask.key`
  }

  const renew = settling<AskedRenewal>({
    columns: [['lease', 'bigint']],
    values: (asked) => [arrayLiteral(asked.map(({ leaseMs }) => leaseMs))],
    // Nothing that an index holds changes for records without bytes, so that a renewal stays within its page.
    set: `until_at = ask.now + ask.lease,
      due_at = CASE WHEN row.due_at IS NOT NULL THEN ask.now + ask.lease END`,
  })

  const complete = settling<AskedCompletion>({
    columns: [
      ['keep_s', 'integer'],
      ['payload_keep', 'bigint'],
    ],
    values: (asked) => [
      arrayLiteral(asked.map(({ options }) => keepSeconds(options.retentionMs))),
      arrayLiteral(asked.map(({ options }) => options.payloadRetentionMs)),
    ],
    bytes: ({ options }) => options.result,
    set: `state = 'c', code = NULL, updated_at = ask.now, until_at = NULL, due_at = NULL, keep_s = ask.keep_s,
      has_payload = row.has_payload AND ask.payload_keep IS NOT NULL,
      has_result = ask.bytes_length IS NOT NULL`,
    letter: 'c',
    after: (bytes) => [
      `DELETE FROM ${contents} AS content USING locked AS ask
      WHERE content.key = ask.key AND ask.had_payload AND ask.payload_keep IS NULL AND ask.bytes_length IS NULL`,
      `UPDATE ${contents} AS content SET payload_until = ask.now + ask.payload_keep FROM locked AS ask
      WHERE content.key = ask.key AND ask.had_payload AND ask.payload_keep IS NOT NULL AND ask.bytes_length IS NULL`,
      `INSERT INTO ${contents} AS content (key, result, payload_until)
      SELECT ask.key, ${bytes}, CASE WHEN ask.had_payload THEN ask.now + ask.payload_keep END
      FROM locked AS ask WHERE ask.bytes_length IS NOT NULL
      ON CONFLICT (key) DO UPDATE SET
        result = excluded.result, payload_until = excluded.payload_until,
        headers = CASE WHEN excluded.payload_until IS NOT NULL THEN content.headers END,
        body = CASE WHEN excluded.payload_until IS NOT NULL THEN content.body END`,
    ],
  })

  // Bytes that came with the first claim are the ones that were acknowledged: a failure never replaces them.
  const brings = '(ask.bytes_length IS NOT NULL AND NOT ask.had_payload)'
  const fail = settling<AskedFailure>({
    columns: [
      ['keep_s', 'integer'],
      ['retry_in', 'bigint'],
      ['code', 'text'],
      ['headers', 'text'],
    ],
    values: (asked) => [
      arrayLiteral(asked.map(({ options }) => keepSeconds(options.retentionMs))),
      arrayLiteral(
        asked.map(({ options }) => (options.dead === true ? undefined : options.retryInMs)),
      ),
      arrayLiteral(asked.map(({ options }) => escapeText(options.code))),
      arrayLiteral(
        asked.map(({ options: { payload } }) =>
          payload === undefined ? undefined : JSON.stringify(payload.headers),
        ),
      ),
    ],
    bytes: ({ options }) => options.payload?.body,
    set: `state = CASE WHEN ask.retry_in IS NULL THEN 'd' ELSE 'f' END, settled_by = 'f', code = ask.code, updated_at = ask.now,
      until_at = ask.now + ask.retry_in,
      due_at = CASE WHEN row.has_payload OR ${brings} THEN ask.now + ask.retry_in END,
      keep_s = ask.keep_s,
      has_payload = row.has_payload OR ${brings}`,
    letter: 'f',
    after: (bytes) => [
      `INSERT INTO ${contents} (key, headers, body) SELECT ask.key, ask.headers, ${bytes}
      FROM locked AS ask WHERE ${brings}
      ON CONFLICT (key) DO UPDATE SET headers = excluded.headers, body = excluded.body`,
    ],
  })

  const giveBack = `state = CASE WHEN row.has_payload THEN 'p' ELSE 'f' END, settled_by = 'r', attempt = row.attempt - 1,
      updated_at = ask.now, until_at = ask.now, due_at = CASE WHEN row.has_payload THEN ask.now END`
  const release = settling<{ readonly hold: Hold }>({
    columns: [],
    values: () => [],
    set: giveBack,
    letter: 'r',
  })
  const abandonText = `WITH ${askedRows([...keyColumns, ['token', 'bigint']])}
    UPDATE ${records} AS row SET ${giveBack} FROM asked AS ask
    WHERE row.key = ask.key AND row.token = ask.token AND row.state = 'r'`

  return {
    renew: {
      ask: async (send, asked) => (await renew.ask(send, asked)).map(renewalOf),
      wait: async (send, asked) => ((await renew.wait(send, asked)) === 'ok' ? 'ok' : 'lost'),
    },
    complete,
    fail,
    release,
    async abandon(send, key, token) {
      await send(abandonText, [...keyValues([{ key }]), arrayLiteral([tokenNumber(token)])])
    },
  }
}

function renewalOf(answer: SettleResult | Busy): RenewResult | Busy {
  return answer === 'already' ? 'lost' : answer
}

function answerOf(answer: string | undefined): SettleResult | Busy {
  if (answer === 'ok' || answer === 'already' || answer === 'lost' || answer === 'busy')
    return answer
  throw new TypeError('The database did not answer every entry of a batch.')
}
