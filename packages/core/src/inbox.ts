import { type Claim, holdClaim } from './claim.ts'
import { randomToken } from './crypto/bytes.ts'
import { sleep, timedOut, withDeadline } from './deadline.ts'
import type { DeliveryKey } from './delivery.ts'
import { optionError, storeUnavailable } from './errors.ts'
import type { DeliveryRef, Observer, StoreOperation } from './observer.ts'
import { type InboxOptions, type Policy, readPolicy, shortestCompletedMs } from './policy.ts'
import type {
  ClaimResult,
  DeliveryRecord,
  ListPage,
  ListQuery,
  RetryResult,
  Store,
  StoreStats,
} from './store.ts'
import { claimResultOf } from './store-answer.ts'

/** One question to the store on behalf of a request. */
export interface OpenRequest {
  readonly key: DeliveryKey
  /** For events: what the delivery is called outside the store. */
  readonly ref: DeliveryRef
  readonly fingerprint: string
  /** The provider's shortest safe retention of completed ids. */
  readonly minRetentionMs: number
  readonly redeliverDead: boolean
}

/** What the store said, with a live claim when this request got it. */
export type OpenResult =
  | { readonly status: 'claimed'; readonly claim: Claim }
  | Exclude<ClaimResult, { status: 'claimed' }>
  | { readonly status: 'unavailable' }

/** The policy over a store, shared by any number of endpoints. */
export interface Inbox {
  readonly store: Store
  /** The checked options, every default filled in. */
  readonly policy: Policy
  readonly observer: Observer
  /** Asks the store for a claim, within `storeTimeoutMs`. Never rejects. */
  open(request: OpenRequest): Promise<OpenResult>
  /**
   * Waits until nothing runs and nothing is left to settle. After `timeoutMs` the signals of what still runs
   * are aborted with the reason `shutdown`.
   */
  drain(options?: {
    readonly timeoutMs?: number
  }): Promise<{ readonly drained: boolean; readonly running: number }>
  get(key: DeliveryKey): Promise<DeliveryRecord | undefined>
  list(query?: ListQuery): Promise<ListPage>
  stats(): Promise<StoreStats>
  /** Puts a dead or failed delivery back to work. `needs_redelivery`: ask the sender to send it again. */
  retry(key: DeliveryKey): Promise<RetryResult>
  /** Removes records whose retention is over, in batches of `limit`; answers how many went in this batch. @default 1000 */
  purge(limit?: number): Promise<number>
  setup(): Promise<void>
  close(): Promise<void>
}

/**
 * Makes the policy over a store: leases, renewal, retries and retention.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function createInbox(options: InboxOptions): Inbox {
  return inboxFor('createInbox', options)
}

/** {@link createInbox} on behalf of another factory: `where` stands in the messages. */
export function inboxFor(where: string, options: InboxOptions): Inbox {
  const policy = readPolicy(where, options)
  const { store, observer, leaseMs, storeTimeoutMs } = policy
  const running = new Set<Claim>()
  const settling = new Set<Promise<void>>()
  // Requests that are asking for a claim: what they get will run.
  let opening = 0

  function report(operation: StoreOperation, ref: DeliveryRef, error: unknown): void {
    observer({ type: 'store_unavailable', operation, ...ref })
    policy.onError(
      error === timedOut
        ? storeUnavailable(
            `The ${store.name} store did not answer "${operation}" in time ("storeTimeoutMs" is ${storeTimeoutMs}).`,
          )
        : error,
    )
  }

  // A claim that nobody saw would block every copy until its lease ends: take it back until the store has answered.
  async function abandon(key: DeliveryKey, token: string, ref: DeliveryRef): Promise<void> {
    const deadline = performance.now() + leaseMs + storeTimeoutMs
    for (let delayMs = 100; performance.now() < deadline; delayMs = Math.min(delayMs * 2, 5000)) {
      const answer = await withDeadline(() => store.abandon(key, token), storeTimeoutMs)
      if (answer.ok) return
      report('abandon', ref, answer.error)
      await sleep(delayMs)
    }
  }

  function track(work: Promise<void>): void {
    settling.add(work)
    work.finally(() => settling.delete(work))
  }

  async function open(request: OpenRequest): Promise<OpenResult> {
    opening += 1
    try {
      return await openNow(request)
    } finally {
      opening -= 1
    }
  }

  async function openNow(request: OpenRequest): Promise<OpenResult> {
    const { key, ref } = request
    const token = randomToken()
    const { event, action } = ref
    const entry = {
      key,
      token,
      leaseMs,
      mode: 'inline',
      fingerprint: request.fingerprint,
      ...(event === undefined ? {} : { event }),
      ...(action === undefined ? {} : { action }),
      ...(policy.maxAttempts === undefined ? {} : { maxAttempts: policy.maxAttempts }),
      respectBackoff: policy.inlineBackoffMs !== undefined,
      redeliverDead: request.redeliverDead,
      unfinishedRetentionMs: policy.unfinishedMs,
      deadRetentionMs: policy.deadMs,
    } as const
    const askedAtMs = performance.now()
    const answer = await withDeadline(
      async () => claimResultOf(store, await store.claim([entry])),
      // A claim that comes when its lease is over is none.
      Math.min(storeTimeoutMs, leaseMs),
      () => track(abandon(key, token, ref)),
    )
    if (!answer.ok) {
      report('claim', ref, answer.error)
      track(abandon(key, token, ref))
      return { status: 'unavailable' }
    }
    const result = answer.value
    if (!result.fingerprintMatches) observer({ type: 'fingerprint_differs', ...ref })
    if (result.status !== 'claimed') {
      observer({ type: 'duplicate', state: result.status, ...ref })
      return result
    }
    observer({ type: 'claimed', attempt: result.attempt, fence: result.fence, ...ref })
    const claim = holdClaim({
      policy,
      ref,
      hold: { key, token, fence: result.fence },
      attempt: result.attempt,
      askedAtMs,
      completedRetentionMs:
        policy.completedMs ?? Math.max(shortestCompletedMs, request.minRetentionMs),
      report,
      onEnd(ended, rest) {
        running.delete(ended)
        if (rest !== undefined) track(rest)
      },
    })
    running.add(claim)
    return { status: 'claimed', claim }
  }

  return Object.freeze({
    store,
    policy,
    observer,
    open,

    async drain({ timeoutMs = 30_000 } = {}) {
      if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0))
        throw optionError(
          `drain: "timeoutMs" must be a number of milliseconds from 0, for instance 30000.`,
        )
      const until = performance.now() + timeoutMs
      const left = (): number => running.size + settling.size + opening
      while (left() > 0 && performance.now() < until) {
        // Not unref'd: a process that drains means to wait.
        await new Promise((resolve) => setTimeout(resolve, Math.min(20, timeoutMs)))
      }
      for (const claim of running) claim.abort('shutdown')
      return { drained: left() === 0, running: left() }
    },

    get: (key) => store.get(key),
    list: (query) => store.list(query),
    stats: () => store.stats(),
    retry: (key) => store.retry(key),
    purge: (limit = 1000) => store.purge(limit),
    setup: () => store.setup(),
    close: () => store.close(),
  } satisfies Inbox)
}
