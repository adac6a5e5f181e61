/** The words of this library as types: one word per idea. */

/** What identifies a delivery in a store. Unique as a triple. */
export interface DeliveryKey {
  /** Who sends, for instance `github`. */
  readonly provider: string
  /** The logical webhook inside one service. For GitHub the hook id by default; empty when there is none. */
  readonly endpoint: string
  /** The sender's id of this message; redeliveries keep it. */
  readonly deliveryId: string
}

/**
 * - `pending`: stored, waiting for a worker
 * - `processing`: claimed
 * - `completed`: done
 * - `failed`: to be run again
 * - `dead`: failed for good
 */
export type DeliveryState = 'pending' | 'processing' | 'completed' | 'failed' | 'dead'

/** Header names in lower case to values; repeated headers joined by `, `. Has no prototype. */
export type HeaderMap = Readonly<Record<string, string | undefined>>

/** One verified message of a provider. */
export interface Delivery<Payload = unknown, Event extends string = string> {
  readonly provider: string
  readonly endpoint: string
  /** The delivery id as the sender wrote it. */
  readonly id: string
  /** The sender's name of the event, for instance `pull_request`. */
  readonly event: Event
  /** What happened to the thing that the event names, for instance `opened`, when the sender says so. */
  readonly action: string | undefined
  /** When this process received the request. */
  readonly receivedAt: Date
  readonly headers: HeaderMap
  /** The bytes that were signed, exactly as they came. */
  readonly rawBody: Uint8Array
  /** The decoded body. Any JSON value, scalars and `null` among them. */
  readonly payload: Payload
}

/** One new event of a request that holds several. */
export interface DeliveryItem<Payload = unknown> {
  /** The sender's id of this event, or a digest of it. */
  readonly id: string
  readonly event: string
  readonly payload: Payload
  readonly key: DeliveryKey
  readonly attempt: number
  readonly fence: number
  /**
   * Settles this item now, whatever becomes of the others. Does nothing when it is settled.
   * @throws WebhookInboxError `ERR_CLAIM_LOST` when somebody else has it by now
   */
  complete(): Promise<void>
  /**
   * Says that this item failed: it alone runs again when the sender repeats the request, and never when it is not
   * retryable.
   * @param error handed to `onError`, never stored or sent
   */
  fail(error?: unknown, options?: { readonly retryable?: boolean }): Promise<void>
}

/** A delivery that this process has claimed: what a handler gets. */
export interface ClaimedDelivery<Payload = unknown, Event extends string = string>
  extends Delivery<Payload, Event> {
  /** The unique key of the record in the store. */
  readonly key: DeliveryKey
  /**
   * Of senders that put several events into one request: those that are new. The end of the handler settles all that it
   * has not settled one by one. Absent where a request is one event.
   */
  readonly items?: readonly DeliveryItem[]
  /** 1 for the first claim, +1 for each takeover or retry. */
  readonly attempt: number
  /** Grows with every claim of the key. Write it beside an effect to refuse a holder that came late. */
  readonly fence: number
  /** Aborted when the claim is lost, the run takes too long or the process stops; `reason` is an {@link AbortReason}. */
  readonly signal: AbortSignal
  /**
   * A key for the APIs that the handler calls: the same for every attempt of this delivery, another for every
   * `purpose`. At most 180 characters of `A-Za-z0-9_.:-`.
   * @param purpose 1 to 128 characters of `A-Za-z0-9_.:-`
   * @throws WebhookInboxError `ERR_OPTION` when `purpose` has other characters
   */
  idempotencyKey(purpose?: string): string
  /**
   * Settles the delivery as completed inside the caller's database transaction: it commits or rolls back with
   * the business change. Call it last in the transaction.
   * @throws WebhookInboxError `ERR_CLAIM_LOST` when the claim is somebody else's by now: let it roll back your transaction
   * @throws WebhookInboxError `ERR_TRANSACTION` when the store cannot use `tx`
   */
  completeIn(tx: unknown): Promise<void>
  /**
   * Says that this run failed although the handler returns normally. A 2xx answer is then replaced by 503, or
   * by 422 when it is not retryable.
   * @param error for your own logs: handed to `onError`, never stored or sent
   */
  fail(error?: unknown, options?: { readonly retryable?: boolean }): void
  /** Renews the lease now. Needed only by a handler that blocks the event loop on purpose: renewal is automatic. */
  renew(): Promise<'ok' | 'lost'>
}

/** Why {@link ClaimedDelivery.signal} was aborted. */
export type AbortReason = 'lease_lost' | 'shutdown' | 'timeout'
