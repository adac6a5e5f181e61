/**
 * The store contract. A store knows no HTTP, no provider and no policy: it holds records and moves them between
 * states, atomically.
 *
 * Rules that every store keeps, shown by the testkit:
 *
 * 1. One claim is one round trip, and the loser learns the state in the same trip.
 * 2. The same token on its own `processing` row, live or expired, gets `claimed` again: same fence, same attempt,
 *    lease restarted. A resent command or a lost reply never blocks its owner.
 * 3. Every later write is guarded by state, token and fence, never by the lease time.
 * 4. A fence is a safe integer that grows with every claim of a key, also across purging and re-creating it.
 * 5. The lease never touches retention. The attempt count survives a lease. The first fingerprint survives
 *    every transition.
 * 6. A duplicate of a completed record writes nothing.
 * 7. Purging works in bounded batches and never removes work that was acknowledged: records that have their bytes
 *    and are not settled have no retention.
 * 8. Bytes are the store's own: what a caller does to a buffer that it handed in or got changes no record.
 * 9. Of the queued records with one `order` the first that is unfinished is the only one that is ever taken, and none
 *    is taken while another of them is processing. The place is the order in which they were stored, for good.
 *
 * All times are the store's own clock; arguments are durations in milliseconds. A lost race is a result, never an
 * exception. A store that cannot answer throws an error with the code `ERR_STORE_UNAVAILABLE`.
 */
import type { DeliveryKey, DeliveryState } from './delivery.ts'

/** What is kept of a request so that a worker can run it: the exact bytes and the headers on the allow-list. */
export interface StoredPayload {
  readonly body: Uint8Array
  readonly headers: Readonly<Record<string, string>>
}

/** One claim. */
export interface ClaimEntry {
  readonly key: DeliveryKey
  /** Random nonce made by the claimer before it asks: 1 to 64 printable ASCII characters. */
  readonly token: string
  /** How long the claim stands without renewal. A positive whole number. */
  readonly leaseMs: number
  /**
   * `inline` claims for a run in this request; `queued` stores the payload and leaves the run to a worker.
   */
  readonly mode: 'inline' | 'queued'
  /** Digest of the content. The first one is kept; a later one is only compared. */
  readonly fingerprint?: string
  /** For operators: kept beside the record, no part of the key. */
  readonly event?: string
  readonly action?: string
  /** Required in `queued` mode. */
  readonly payload?: StoredPayload
  /**
   * `queued` mode: the line in which this record waits, 1 to 255 characters. Kept from the first time that the bytes
   * are stored; a record that has bytes already keeps what it has. An inline claim of a record in a line is told
   * `pending` (or `processing`): it would overtake the others.
   */
  readonly order?: string
  /** A failed or abandoned record with this many attempts becomes `dead` (`attempts_exhausted`). No limit when absent. */
  readonly maxAttempts?: number
  /** Wait for the next attempt time of a failed record (`waiting`) and do not claim it at once. @default false */
  readonly respectBackoff?: boolean
  /** Claim a dead record again, with its attempts counted anew. @default false */
  readonly redeliverDead?: boolean
  /** How long a record that has no bytes is kept from its last change while unfinished. */
  readonly unfinishedRetentionMs: number
  /** How long a record is kept that this claim makes `dead`. @default unfinishedRetentionMs */
  readonly deadRetentionMs?: number
}

/** What became of a claim. */
export type ClaimResult = {
  /** False when the record already had another fingerprint. True when either side has none. */
  readonly fingerprintMatches: boolean
} & (
  | {
      readonly status: 'claimed'
      readonly fence: number
      readonly attempt: number
      readonly leaseMs: number
    }
  /** Queued mode: stored, and no live lease on it: a taker runs it when it is due. `fresh` when this call made the record. */
  | { readonly status: 'pending'; readonly fresh: boolean }
  /** Claimed by somebody else; `leaseMs` is what is left of that lease. In queued mode the bytes are stored now if they were not. */
  | { readonly status: 'processing'; readonly leaseMs: number }
  /** Failed, and not due before `retryInMs`. */
  | { readonly status: 'waiting'; readonly retryInMs: number }
  | { readonly status: 'completed'; readonly at: Date; readonly result?: Uint8Array }
  | { readonly status: 'dead' }
)

/** The proof of a claim. Every settling operation needs all three. */
export interface Hold {
  readonly key: DeliveryKey
  readonly token: string
  readonly fence: number
}

export type RenewResult = 'ok' | 'lost'

/**
 * What became of a settlement:
 * - `ok`: the record is settled
 * - `already`: this token and fence had settled the record before by the same operation (a resent command),
 *   whatever an operator did to it since; nothing changes
 * - `lost`: they do not hold it (any more): taken over, settled by another operation, or ended by the store
 *   itself (`attempts_exhausted`)
 */
export type SettleResult = 'ok' | 'already' | 'lost'

export interface CompleteOptions {
  /** How long the record is kept, so that late copies are recognised. */
  readonly retentionMs: number
  /** Bytes to give to later claims of the same key. */
  readonly result?: Uint8Array
  /** Keep the stored bytes this long after completion; dropped at once when absent. */
  readonly payloadRetentionMs?: number
}

export type FailOptions = {
  /** Short machine word, for instance `handler_error`. Never a message. */
  readonly code: string
  /** How long the run took, for the record's {@link DeliveryRecord.attempts}. */
  readonly durationMs?: number
  /** How long the record is kept when it is dead or has no bytes. */
  readonly retentionMs: number
  /** Stores the bytes with the failure, for records claimed inline without them. */
  readonly payload?: StoredPayload
} & ({ readonly retryInMs: number; readonly dead?: false } | { readonly dead: true })

/** A claimed record as a worker gets it. */
export interface TakenDelivery {
  readonly hold: Hold
  readonly attempt: number
  /** How many owners in a row have let it go by the end of their lease: dead processes, for the most part. */
  readonly lostOwners: number
  readonly leaseMs: number
  readonly event?: string
  readonly action?: string
  readonly receivedAt: Date
  readonly payload: StoredPayload
}

/** An attempt that did not complete. */
export interface AttemptRecord {
  readonly attempt: number
  /** When it was settled; of a lost owner, when its lease ended. */
  readonly endedAt: Date
  /** What the holder said it took; absent for a lost owner. */
  readonly durationMs?: number
  /** The code of the failure; `lease_expired` when the owner let it go by the end of its lease. */
  readonly code: string
}

/** A record as an operator sees it. Times are the store's clock. */
export interface DeliveryRecord {
  readonly key: DeliveryKey
  readonly state: DeliveryState
  /** `processing` with a lease that has ended: its owner died or lost touch. */
  readonly abandoned: boolean
  readonly event?: string
  readonly action?: string
  readonly attempt: number
  readonly fence: number
  readonly fingerprint?: string
  /** The code of the last failure. */
  readonly code?: string
  /** Whether the bytes are stored, so that a worker can run it. */
  readonly hasPayload: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  /** End of the lease (`processing`) or the next attempt time (`failed`). */
  readonly dueAt?: Date
  /** When the record may be purged; absent for work that has no retention. */
  readonly purgeAt?: Date
  /** The last ten attempts that did not complete, oldest first. Only `get` reads them. */
  readonly attempts?: readonly AttemptRecord[]
}

export interface ListQuery {
  readonly state?: DeliveryState
  readonly provider?: string
  readonly event?: string
  /** Records created at or after. */
  readonly since?: Date
  /** Records created before. */
  readonly until?: Date
  /** 1 to 1000. @default 100 */
  readonly limit?: number
  /** The `next` of the page before. */
  readonly cursor?: string
}

/** One page, newest first. `next` is absent on the last one. */
export interface ListPage {
  readonly records: readonly DeliveryRecord[]
  readonly next?: string
}

export interface StoreStats {
  readonly states: Readonly<Record<Exclude<DeliveryState, 'completed'>, number>> & {
    /** Absent in a store that keeps completed records only to recognise copies, and cannot count them cheaply. */
    readonly completed?: number
  }
  /** Claims whose lease has ended; part of `processing`. */
  readonly abandoned: number
  /** Age of the oldest record that is neither completed nor dead. */
  readonly oldestUnfinishedMs?: number
}

/** `needs_redelivery`: no bytes are stored, so the sender has to send it again. */
export type RetryResult = 'pending' | 'needs_redelivery' | 'not_found' | 'not_retryable'

/** The hints of a store, until it is closed. */
export interface Watch {
  /** Whose work is heard of: that of this instance, or that of every process. */
  readonly reach: 'instance' | 'all'
  close(): Promise<void>
}

export interface Store {
  /** For messages, for instance `sqlite`. */
  readonly name: string
  /** Claims every entry; results in the order of the entries. Entries of one call may name the same key. */
  claim(entries: readonly ClaimEntry[]): Promise<readonly ClaimResult[]>
  renew(hold: Hold, leaseMs: number): Promise<RenewResult>
  /**
   * @param tx the caller's open transaction: the change commits or rolls back with it
   * @throws WebhookInboxError `ERR_TRANSACTION` when `tx` is not one this store can use
   */
  complete(hold: Hold, options: CompleteOptions, tx?: unknown): Promise<SettleResult>
  fail(hold: Hold, options: FailOptions, tx?: unknown): Promise<SettleResult>
  /** Gives back work that never started: the attempt is not counted, the fence is kept. */
  release(hold: Hold): Promise<SettleResult>
  /**
   * Gives back a claim whose reply never came. When the claim has not arrived yet, one that arrives later with
   * this token may still be granted: call again until its lease would have ended, or the connection is known dead.
   */
  abandon(key: DeliveryKey, token: string): Promise<void>
  /**
   * Claims what is workable: pending, due and abandoned records whose bytes are stored. Disjoint over any number of takers.
   * @throws WebhookInboxError `ERR_OPTION` for a limit that is none
   */
  take(options: {
    /** 1 to 1000. */
    readonly limit: number
    readonly leaseMs: number
    readonly maxAttempts?: number
    readonly deadRetentionMs: number
    /** A dead record stops its line until an operator has retried it or it was purged. @default false */
    readonly deadBlocksOrder?: boolean
  }): Promise<readonly TakenDelivery[]>
  get(key: DeliveryKey): Promise<DeliveryRecord | undefined>
  /**
   * A store whose `stats` do not count completed records leaves them out of its lists too.
   * @throws WebhookInboxError `ERR_OPTION` for an unknown filter, a limit or a cursor that is none, and for
   * `state: 'completed'` in a store that lists none
   */
  list(query?: ListQuery): Promise<ListPage>
  stats(): Promise<StoreStats>
  /**
   * Whether nothing newer was seen of an entity, and if so remembers `occurredAtMs` as the newest. Equal times pass.
   * Atomic over every instance. Forgotten when nothing was remembered for `retentionMs`.
   * @param tx the caller's open transaction: what is remembered commits or rolls back with it, and whoever asks about
   * the same entity meanwhile waits for it
   * @throws WebhookInboxError `ERR_TRANSACTION` when `tx` is not one this store can use
   */
  latest(
    entry: {
      /** 1 to 255 characters. */
      readonly entity: string
      /** Epoch milliseconds by the sender's clock. */
      readonly occurredAtMs: number
      readonly retentionMs: number
    },
    tx?: unknown,
  ): Promise<boolean>
  /**
   * Calls back when work may have come: a hint, which may be lost or mean nothing. What a taker relies on is asking.
   * Absent in a store that has no such hints.
   */
  watch?(onWork: () => void): Promise<Watch>
  /** Puts a dead or failed record back to work with its attempts counted anew. */
  retry(key: DeliveryKey): Promise<RetryResult>
  /**
   * Removes at most `limit` records whose retention has ended; answers how many went.
   * @param limit 1 to 1,000,000
   * @throws WebhookInboxError `ERR_OPTION` when it is not
   */
  purge(limit: number): Promise<number>
  /** Creates or migrates the schema. Idempotent, safe from several processes at once. */
  setup(): Promise<void>
  /** Closes what the store opened. Idempotent; leaves a client that was handed in. */
  close(): Promise<void>
}
