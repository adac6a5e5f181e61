import { type Claim, type ClaimContext, holdClaim } from './claim.ts'
import { randomToken } from './crypto/bytes.ts'
import { sleep, timedOut, withDeadline } from './deadline.ts'
import type { DeliveryKey } from './delivery.ts'
import { optionError, storeUnavailable, type WebhookInboxError } from './errors.ts'
import type { DeliveryRef, Observer, StoreOperation } from './observer.ts'
import { type InboxOptions, type Policy, readPolicy, shortestCompletedMs } from './policy.ts'
import type {
  ClaimResult,
  DeliveryRecord,
  ListPage,
  ListQuery,
  RetryResult,
  Store,
  StoredPayload,
  StoreStats,
  TakenDelivery,
} from './store.ts'
import { claimResultOf } from './store-answer.ts'

/** What a worker needs to run a delivery later. */
export interface QueuedWork {
  readonly payload: StoredPayload
  readonly order?: string
}

/** A delivery that this process has taken to run. */
export interface TakenClaim {
  readonly taken: TakenDelivery
  readonly ref: DeliveryRef
  readonly claim: Claim
}

/** One question to the store on behalf of a request. */
export interface OpenRequest {
  readonly key: DeliveryKey
  /** For events: what the delivery is called outside the store. */
  readonly ref: DeliveryRef
  /** Absent for an item of a batch. */
  readonly fingerprint?: string
  /** The provider's shortest safe retention of completed ids. */
  readonly minRetentionMs: number
  readonly redeliverDead: boolean
  /** An item of a request that a worker runs: that one's backoff and attempts count. @default false */
  readonly stored?: boolean
  /** Stores it for a worker, and claims nothing. */
  readonly queued?: QueuedWork
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
  /** Asks for several at once, in one call of the store: all are answered, or all `unavailable`. Never rejects. */
  openAll(requests: readonly Omit<OpenRequest, 'queued'>[]): Promise<readonly OpenResult[]>
  /**
   * Claims what is due for a worker of this process; the leases are renewed from here on.
   * @throws WebhookInboxError `ERR_STORE_UNAVAILABLE`
   */
  take(options: {
    readonly limit: number
    readonly maxAttempts: number
    readonly deadBlocksOrder: boolean
    /** The provider's shortest safe retention of completed ids. */
    readonly minRetentionMs: (provider: string) => number
  }): Promise<readonly TakenClaim[]>
  /**
   * Waits until nothing runs and nothing is left to settle. After `timeoutMs` the signals of what still runs
   * are aborted with the reason `shutdown`.
   */
  drain(options?: {
    readonly timeoutMs?: number
  }): Promise<{ readonly drained: boolean; readonly running: number }>
  /**
   * Whether nothing newer was seen of an entity; if so, `occurredAt` is the newest from now on. An older event can be
   * skipped before it overwrites newer state. Equal times pass, so a delivery that is run again passes too.
   *
   * With `tx` the answer holds until that transaction ends, and counts only when it commits. Without it the answer
   * is advice: two handlers may both be told true and write in either order.
   * @param entityKey what the event is about, unique in the store: 1 to 255 characters, for instance `order:42`
   * @param occurredAt when the sender says it happened; a number is epoch milliseconds
   * @throws WebhookInboxError `ERR_OPTION` for a key or time that is none
   * @throws WebhookInboxError `ERR_TRANSACTION` when the store cannot use `tx`
   */
  latest(entityKey: string, occurredAt: Date | number, tx?: unknown): Promise<boolean>
  get(key: DeliveryKey): Promise<DeliveryRecord | undefined>
  list(query?: ListQuery): Promise<ListPage>
  stats(): Promise<StoreStats>
  /** Puts a dead or failed delivery back to work. `needs_redelivery`: ask the sender to send it again. */
  retry(key: DeliveryKey): Promise<RetryResult>
  /**
   * Puts back to work what a filter finds, page by page, from the newest to the oldest.
   * @param query `state` is `dead` when left out; `limit` is that of a page
   * @returns how many of each result
   */
  retryAll(query?: ListQuery): Promise<Readonly<Record<RetryResult, number>>>
  /** Removes records whose retention is over, in batches of `limit`; answers how many went in this batch. @default 1000 */
  purge(limit?: number): Promise<number>
  setup(): Promise<void>
  close(): Promise<void>
}

// What a Date can hold.
const longestDateMs = 8_640_000_000_000_000

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
    policy.onError(error === timedOut ? lateAnswer(operation) : error)
  }

  function lateAnswer(operation: StoreOperation): WebhookInboxError {
    return storeUnavailable(
      `The ${store.name} store did not answer "${operation}" in time ("storeTimeoutMs" is ${storeTimeoutMs}).`,
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

  async function counted<T>(work: () => Promise<T>): Promise<T> {
    opening += 1
    try {
      return await work()
    } finally {
      opening -= 1
    }
  }

  function hold({
    minRetentionMs,
    ...held
  }: Pick<ClaimContext, 'ref' | 'hold' | 'attempt' | 'askedAtMs'> & {
    readonly minRetentionMs: number
  }): Claim {
    const claim = holdClaim({
      ...held,
      policy,
      completedRetentionMs: policy.completedMs ?? Math.max(shortestCompletedMs, minRetentionMs),
      report,
      onEnd(ended, rest) {
        running.delete(ended)
        if (rest !== undefined) track(rest)
      },
    })
    running.add(claim)
    return claim
  }

  async function take({
    minRetentionMs,
    ...options
  }: Parameters<Inbox['take']>[0]): Promise<readonly TakenClaim[]> {
    const askedAtMs = performance.now()
    const answer = await withDeadline(
      () => store.take({ ...options, leaseMs, deadRetentionMs: policy.deadMs }),
      Math.min(storeTimeoutMs, leaseMs),
      // What nobody waits for any more is given back, or it would wait for the end of its lease.
      (late) => {
        if (late.ok) track(giveBack(late.value))
      },
    )
    if (!answer.ok) {
      observer({ type: 'store_unavailable', operation: 'take' })
      throw answer.error === timedOut ? lateAnswer('take') : answer.error
    }
    return answer.value.map((taken) => {
      const { key } = taken.hold
      const ref: DeliveryRef = {
        provider: key.provider,
        endpoint: key.endpoint,
        deliveryId: key.deliveryId,
        ...(taken.event === undefined ? {} : { event: taken.event }),
        ...(taken.action === undefined ? {} : { action: taken.action }),
      }
      observer({ type: 'claimed', attempt: taken.attempt, fence: taken.hold.fence, ...ref })
      const claim = hold({
        ref,
        hold: taken.hold,
        attempt: taken.attempt,
        askedAtMs,
        minRetentionMs: minRetentionMs(key.provider),
      })
      return { taken, ref, claim }
    })
  }

  async function giveBack(deliveries: readonly TakenDelivery[]): Promise<void> {
    await Promise.all(
      deliveries.map(({ hold }) => withDeadline(() => store.release(hold), storeTimeoutMs)),
    )
  }

  // Nothing is claimed: a reply that is lost leaves a record that a worker runs.
  async function storeNow(
    { key, ref, ...request }: OpenRequest,
    { payload, order }: QueuedWork,
  ): Promise<OpenResult> {
    const answer = await withDeadline(async () => {
      const stored = policy.seal === undefined ? payload : await policy.seal.seal(key, payload)
      const entry = {
        ...entryOf({ key, ref, ...request }),
        mode: 'queued',
        payload: stored,
        ...(order === undefined ? {} : { order }),
      } as const
      const result = claimResultOf(store, await store.claim([entry]), 0)
      if (result.status !== 'claimed') return result
      throw storeUnavailable(`The ${store.name} store granted a claim where work had to be stored.`)
    }, storeTimeoutMs)
    if (!answer.ok) {
      report('claim', ref, answer.error)
      return { status: 'unavailable' }
    }
    const result = answer.value
    if (!result.fingerprintMatches) observer({ type: 'fingerprint_differs', ...ref })
    observer(
      result.status === 'pending' && result.fresh
        ? { type: 'stored', ...ref }
        : { type: 'duplicate', state: result.status, ...ref },
    )
    return result
  }

  function entryOf({ key, ref, fingerprint, redeliverDead, stored = false }: OpenRequest) {
    const { event, action } = ref
    return {
      key,
      token: randomToken(),
      leaseMs,
      mode: 'inline',
      ...(fingerprint === undefined ? {} : { fingerprint }),
      ...(event === undefined ? {} : { event }),
      ...(action === undefined ? {} : { action }),
      ...(policy.maxAttempts === undefined || stored ? {} : { maxAttempts: policy.maxAttempts }),
      respectBackoff: policy.inlineBackoffMs !== undefined && !stored,
      redeliverDead,
      unfinishedRetentionMs: policy.unfinishedMs,
      deadRetentionMs: policy.deadMs,
    } as const
  }

  async function openNow({ queued, ...request }: OpenRequest): Promise<OpenResult> {
    if (queued !== undefined) return storeNow(request, queued)
    const [result] = await claimNow([request])
    return result ?? { status: 'unavailable' }
  }

  async function claimNow(requests: readonly OpenRequest[]): Promise<readonly OpenResult[]> {
    if (requests.length === 0) return []
    const asked = requests.map((request) => ({ request, entry: entryOf(request) }))
    const abandonAll = (): void => {
      for (const { request, entry } of asked) track(abandon(entry.key, entry.token, request.ref))
    }
    const askedAtMs = performance.now()
    const answer = await withDeadline(
      async () => {
        const results = await store.claim(asked.map(({ entry }) => entry))
        return asked.map((one, index) => ({
          ...one,
          result: claimResultOf(store, results, index),
        }))
      },
      // A claim that comes when its lease is over is none.
      Math.min(storeTimeoutMs, leaseMs),
      abandonAll,
    )
    if (!answer.ok) {
      for (const { request } of asked) report('claim', request.ref, answer.error)
      abandonAll()
      return asked.map(() => ({ status: 'unavailable' }))
    }
    return answer.value.map(({ request, entry, result }) => {
      const { ref } = request
      if (!result.fingerprintMatches) observer({ type: 'fingerprint_differs', ...ref })
      if (result.status !== 'claimed') {
        observer({ type: 'duplicate', state: result.status, ...ref })
        return result
      }
      const { fence, attempt } = result
      observer({ type: 'claimed', attempt, fence, ...ref })
      const claim = hold({
        ref,
        hold: { key: entry.key, token: entry.token, fence },
        attempt,
        askedAtMs,
        minRetentionMs: request.minRetentionMs,
      })
      return { status: 'claimed', claim }
    })
  }

  return Object.freeze({
    store,
    policy,
    observer,
    open: (request) => counted(() => openNow(request)),
    openAll: (requests) => counted(() => claimNow(requests)),
    take,

    async latest(entityKey, occurredAt, tx) {
      const occurredAtMs = Math.floor(Number(occurredAt))
      if (!Number.isSafeInteger(occurredAtMs) || Math.abs(occurredAtMs) > longestDateMs) {
        throw optionError(
          'latest: "occurredAt" must be a Date or epoch milliseconds, for instance new Date(payload.updated_at).',
        )
      }
      if (
        typeof entityKey !== 'string' ||
        entityKey === '' ||
        entityKey.length > 255 ||
        /\p{Surrogate}/u.test(entityKey)
      ) {
        throw optionError(
          'latest: "entityKey" must be a text of 1 to 255 characters, for instance "order:42".',
        )
      }
      const retentionMs = policy.completedMs ?? shortestCompletedMs
      return store.latest({ entity: entityKey, occurredAtMs, retentionMs }, tx)
    },

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
    async retryAll(query = {}) {
      const counts = { pending: 0, needs_redelivery: 0, not_found: 0, not_retryable: 0 }
      let page: ListPage = { records: [] }
      do {
        page = await store.list({
          state: 'dead',
          ...query,
          ...(page.next === undefined ? {} : { cursor: page.next }),
        })
        for (const { key } of page.records) counts[await store.retry(key)] += 1
      } while (page.next !== undefined)
      return counts
    },
    purge: (limit = 1000) => store.purge(limit),
    setup: () => store.setup(),
    close: () => store.close(),
  } satisfies Inbox)
}
