/**
 * Lifecycle events for logs and metrics. None holds a secret, signature, token, payload or the message of an
 * error: those may carry what a user typed.
 */

/** Which delivery an event is about. */
export interface DeliveryRef {
  readonly provider: string
  readonly endpoint: string
  readonly deliveryId: string
  readonly event?: string
  readonly action?: string
}

export type StoreOperation =
  | 'claim'
  | 'renew'
  | 'complete'
  | 'fail'
  | 'release'
  | 'abandon'
  | 'get'
  | 'take'
  | 'purge'
  | 'watch'

export type WarningCode =
  /** The sender's endpoint header is absent: a proxy that strips it changes the delivery key. */
  | 'endpoint_missing'
  /** The handler took longer than the sender waits for an answer. */
  | 'ack_deadline_passed'
  /** `retention.completedMs` is shorter than the time in which the sender may deliver again. */
  | 'retention_short'
  /** The body is not of the type it says: the handler gets the bytes and an undefined payload. */
  | 'payload_unreadable'
  /** `orderKey` threw or returned no key: the delivery is stored without a line. */
  | 'order_key_failed'

export type ObserverEvent =
  /** Answered without touching the store. `code` is the one in the answer. */
  | {
      readonly type: 'refused'
      readonly provider: string
      readonly code: string
      readonly status: number
    }
  /** The signature holds. `secretIndex` tells which secret of the list matched, for rotation. */
  | ({
      readonly type: 'verified'
      readonly secretIndex: number
      /** Which attempt the sender says this is, and why: at most 64 visible characters. */
      readonly retryNumber?: string
      readonly retryReason?: string
    } & DeliveryRef)
  /** The sender has tested or confirmed the address; `name` says how. */
  | { readonly type: 'handshake'; readonly provider: string; readonly name: string }
  /** The event is not on the allow-list, or is the sender's ping. */
  | ({ readonly type: 'ignored' | 'ping' } & DeliveryRef)
  | ({ readonly type: 'claimed'; readonly attempt: number; readonly fence: number } & DeliveryRef)
  /** Stored for a worker. */
  | ({ readonly type: 'stored' } & DeliveryRef)
  /** Given back without a run: the worker stopped. */
  | ({ readonly type: 'released' } & DeliveryRef)
  /** A copy was answered; `state` is what the record said. */
  | ({
      readonly type: 'duplicate'
      readonly state: 'pending' | 'processing' | 'waiting' | 'completed' | 'dead'
    } & DeliveryRef)
  /** The same delivery key came with other content. */
  | ({ readonly type: 'fingerprint_differs' } & DeliveryRef)
  | ({
      readonly type: 'completed'
      readonly attempt: number
      readonly durationMs: number
    } & DeliveryRef)
  | ({
      readonly type: 'failed' | 'dead'
      readonly attempt: number
      readonly durationMs: number
      readonly code: string
    } & DeliveryRef)
  /** Settling came too late: another holder has the claim, and may have completed it. The delivery ran twice. */
  | ({
      readonly type: 'claim_lost'
      readonly attempt: number
      readonly durationMs: number
    } & DeliveryRef)
  /** The lease ended under a running handler; its signal was aborted. */
  | ({ readonly type: 'lease_lost'; readonly attempt: number } & DeliveryRef)
  /** The run took longer than `maxRunMs`; its signal was aborted. */
  | ({ readonly type: 'run_timeout'; readonly attempt: number } & DeliveryRef)
  /** The answer was 404 or 405: there is no route behind the middleware. */
  | ({ readonly type: 'no_handler'; readonly status: number } & DeliveryRef)
  /** The response outgrew `maxHeldResponseBytes` and flows before it is settled. */
  | ({ readonly type: 'response_unheld' } & DeliveryRef)
  | ({
      readonly type: 'store_unavailable'
      readonly operation: StoreOperation
    } & Partial<DeliveryRef>)
  /** The outcome could not be stored yet and is tried again for the life of the process; later `settle_recovered`. */
  | ({
      readonly type: 'settle_pending' | 'settle_recovered'
      readonly operation: StoreOperation
    } & DeliveryRef)
  | ({ readonly type: 'warning'; readonly code: WarningCode } & Partial<DeliveryRef>)

/** Called synchronously, in the order of things. What it throws is dropped: watching never changes the outcome. */
export type Observer = (event: ObserverEvent) => void

/** Wraps an observer so that it can neither throw nor reject into the caller. */
export function quietObserver(observer: Observer | undefined): Observer {
  if (observer === undefined) return () => {}
  return (event) => swallow(() => observer(event))
}

/** Runs a caller's hook; what it throws or rejects with is dropped. */
export function swallow(hook: () => unknown): void {
  try {
    const returned = hook()
    // Also promises of other realms and libraries, which are no instances of ours.
    if (typeof returned === 'object' && returned !== null && 'then' in returned)
      Promise.resolve(returned).catch(() => {})
  } catch {
    // A broken hook must not turn a good delivery into a failure.
  }
}
