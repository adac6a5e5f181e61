import { createBatch } from '@webhook-inbox/core'
import type { Connection } from './connection.ts'
import type { Place } from './key.ts'
import type { Script } from './script.ts'

/** Something that a script does to the record of one delivery. */
export interface PlacedCall {
  readonly place: Place
  /** Two calls with one token for one record do not go together. */
  readonly token: string
}

export interface ShardBatchOptions<Call, Result> {
  readonly connection: Connection
  readonly script: Script
  /** Whether replicas have to confirm, where the caller wants that. @default false */
  readonly replicate?: boolean
  /** The bytes that a call brings. */
  sizeOf(call: Call): number
  /** What the script gets beside the records, for calls of one shard. */
  argsOf(calls: readonly Call[]): readonly (string | Buffer)[]
  /** The results in a reply of the script, in the order of the calls. */
  resultsOf(reply: unknown, calls: readonly Call[]): readonly Result[]
}

/**
 * Makes a function that does one call, together with those of its shard that come at the same time. Each shard has
 * batches of its own: while Redis works through one the client makes another.
 */
export function createShardBatch<Call extends PlacedCall, Result>(
  options: ShardBatchOptions<Call, Result>,
): (call: Call) => Promise<Result> {
  const { connection, script, replicate = false, sizeOf, argsOf, resultsOf } = options
  const batches = connection.shards.map((shard) =>
    createBatch<Call, Result>({
      keyOf: ({ place, token }) => `${place.id} ${token}`,
      sizeOf,
      // Redis works through one after the other anyway: what arrives meanwhile goes together.
      maxInFlight: 1,
      timeoutMs: connection.timeoutMs,
      async send(calls) {
        const keys = calls.map(({ place }) => `${shard.base}${place.id}`)
        const args = argsOf(calls)
        return resultsOf(await connection.run(script, shard, keys, args, { replicate }), calls)
      },
    }),
  )
  return (call) => {
    const batch = batches[call.place.shard]
    if (batch === undefined) throw new RangeError('There is no such shard.')
    return batch(call)
  }
}
