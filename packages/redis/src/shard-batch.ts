import { createBatch, storeUnavailable } from '@webhook-inbox/core'
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
 * Makes a function that does one call, together with those that come at the same time: one script for each shard, and
 * all scripts in one packet. In a cluster shards are apart from one another, so that a node that is down holds up
 * its own only.
 */
export function createShardBatch<Call extends PlacedCall, Result>(
  options: ShardBatchOptions<Call, Result>,
): (call: Call) => Promise<Result> {
  const { connection, script, replicate = false, sizeOf, argsOf, resultsOf } = options
  const { shards, isCluster, timeoutMs } = connection

  async function send(calls: readonly Call[]): Promise<readonly Result[]> {
    const jobs = shards
      .map((shard) => ({ shard, own: calls.filter(({ place }) => place.shard === shard.number) }))
      .filter(({ own }) => own.length > 0)
      .map(({ shard, own }) => ({
        shard,
        own,
        keys: own.map(({ place }) => `${shard.base}${place.id}`),
        args: argsOf(own),
      }))
    const replies = await connection.runAll(script, jobs, { replicate })
    const results = new Map<Call, Result>()
    for (const [index, { own }] of jobs.entries()) {
      for (const [at, result] of resultsOf(replies[index], own).entries()) {
        const call = own[at]
        if (call !== undefined) results.set(call, result)
      }
    }
    return calls.map((call) => {
      const result = results.get(call)
      if (result === undefined) throw storeUnavailable('Redis did not answer every call.')
      return result
    })
  }

  const batches = Array.from({ length: isCluster ? shards.length : 1 }, () =>
    createBatch<Call, Result>({
      keyOf: ({ place, token }) => `${place.id} ${token}`,
      sizeOf,
      // Redis works through one after the other anyway: what arrives meanwhile goes together.
      maxInFlight: 1,
      timeoutMs,
      send,
    }),
  )
  return async (call) => {
    const batch = batches[isCluster ? call.place.shard : 0]
    if (batch === undefined) throw new RangeError('There is no such shard.')
    return batch(call)
  }
}
