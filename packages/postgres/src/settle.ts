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
import { callText, type FunctionName, giveBack } from './functions.ts'
import { integer, text } from './row.ts'
import type { Tables } from './schema.ts'
import { askedRows, keyColumns } from './sql.ts'

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

/** Another transaction has the record: ask alone, and wait. */
export type Busy = 'busy'

/** One of the operations, on a batch of holds, no two of one key. */
export interface Settling<Asked, Result> {
  /** Answers at once, whatever others have locked. */
  ask(send: Send, asked: readonly Asked[]): Promise<readonly (Result | Busy)[]>
  /** Waits for the record. */
  wait(send: Send, asked: Asked): Promise<Result>
}

export interface Settlings {
  readonly renew: Settling<AskedRenewal, RenewResult>
  readonly complete: Settling<AskedCompletion, SettleResult>
  readonly fail: Settling<AskedFailure, SettleResult>
  readonly release: Settling<{ readonly hold: Hold }, SettleResult>
  abandon(send: Send, key: DeliveryKey, token: string): Promise<void>
}

export function createSettlings(tables: Tables): Settlings {
  function settling<Asked extends { readonly hold: Hold }>(
    name: Exclude<FunctionName, 'claim'>,
    valuesOf: (asked: readonly Asked[]) => readonly SqlValue[],
  ): Settling<Asked, SettleResult> {
    const call = callText(tables, name)

    async function settle(
      send: Send,
      asked: readonly Asked[],
      waits: boolean,
    ): Promise<readonly (SettleResult | Busy)[]> {
      const rows = await send(call, [
        ...keyValues(asked.map(({ hold }) => hold)),
        arrayLiteral(asked.map(({ hold }) => tokenNumber(hold.token))),
        arrayLiteral(asked.map(({ hold }) => hold.fence)),
        ...valuesOf(asked),
        String(waits),
      ])
      const answers = new Map(rows.map((row) => [integer(row, 'n') - 1, text(row, 'answer')]))
      return asked.map((_, index) => answerOf(answers.get(index)))
    }

    return {
      ask: (send, asked) => settle(send, asked, false),
      async wait(send, asked) {
        const [answer] = await settle(send, [asked], true)
        if (answer === undefined || answer === 'busy')
          throw new TypeError('The database did not settle a record that it had locked.')
        return answer
      },
    }
  }

  const renew = settling<AskedRenewal>('renew', (asked) => [
    arrayLiteral(asked.map(({ leaseMs }) => leaseMs)),
  ])

  const complete = settling<AskedCompletion>('complete', (asked) => {
    const { bytes, starts, lengths } = pack(asked.map(({ options }) => options.result))
    return [
      arrayLiteral(asked.map(({ options }) => keepSeconds(options.retentionMs))),
      arrayLiteral(asked.map(({ options }) => options.payloadRetentionMs)),
      arrayLiteral(starts),
      arrayLiteral(lengths),
      bytes,
    ]
  })

  const fail = settling<AskedFailure>('fail', (asked) => {
    const payloads = asked.map(({ options }) => options.payload)
    const { bytes, starts, lengths } = pack(payloads.map((payload) => payload?.body))
    return [
      arrayLiteral(asked.map(({ options }) => keepSeconds(options.retentionMs))),
      arrayLiteral(
        asked.map(({ options }) => (options.dead === true ? undefined : options.retryInMs)),
      ),
      arrayLiteral(asked.map(({ options }) => escapeText(options.code))),
      arrayLiteral(asked.map(({ options }) => options.durationMs)),
      arrayLiteral(
        payloads.map((payload) =>
          payload === undefined ? undefined : JSON.stringify(payload.headers),
        ),
      ),
      arrayLiteral(starts),
      arrayLiteral(lengths),
      bytes,
    ]
  })

  const release = settling<{ readonly hold: Hold }>('release', () => [])
  const abandonText = `WITH ${askedRows([...keyColumns, ['token', 'bigint']])}, given AS (
      UPDATE ${tables.records} AS row SET ${giveBack} FROM asked AS ask
      WHERE row.key = ask.key AND row.token = ask.token AND row.state = 'r'
      RETURNING row.line, ask.now
    ) UPDATE ${tables.lines} AS line SET due_at = given.now FROM given WHERE line.line = given.line`

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
