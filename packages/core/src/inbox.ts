import { randomToken } from './crypto/bytes.ts'
import { sleep, timedOut, unref, withDeadline } from './deadline.ts'
import type { AbortReason, DeliveryKey } from './delivery.ts'
import { optionError, rejectUnknownOptions, storeUnavailable, WebhookInboxError } from './errors.ts'
import {
  type DeliveryRef,
  type Observer,
  quietObserver,
  type StoreOperation,
  swallow,
} from './observer.ts'
import { countOption, durationOption, functionOption, retentionOption } from './options.ts'
import type {
  ClaimResult,
  DeliveryRecord,
  FailOptions,
  Hold,
  ListPage,
  ListQuery,
  RetryResult,
  SettleResult,
  Store,
  StoreStats,
} from './store.ts'

const second = 1000
const day = 86_400 * second

/** When a delivery is run again. */
export interface RetryOptions {
  /**
   * Failed runs before the delivery is `dead`. Inline there is no limit unless this is set: the sender's schedule
   * is the limit.
   */
  readonly maxAttempts?: number
  /**
   * Inline: refuse a redelivery (503 + `Retry-After`) for this long after a failure. Without it a redelivery
   * runs at once: the sender's schedule is the backoff.
   */
  readonly inlineBackoffMs?: number
}

/** How long records are kept, by state. All in milliseconds. */
export interface RetentionOptions {
  /** @default 30 days, or the provider's own redelivery window when that is longer */
  readonly completedMs?: number
  /** @default 14 days */
  readonly deadMs?: number
  /** Unfinished records without bytes, from their last change. @default 14 days */
  readonly unfinishedMs?: number
}

/** What an inbox decides: lease, retries, retention and how long a store may take. */
export interface PolicyOptions {
  /** How long a claim stands without renewal; renewed at each third. @default 30000 */
  readonly leaseMs?: number
  /** The longest run; its signal is aborted then and the delivery fails. @default 900000 (15 min) */
  readonly maxRunMs?: number
  readonly retry?: RetryOptions
  readonly retention?: RetentionOptions
  /** The longest wait for the store in one request. @default 2000 */
  readonly storeTimeoutMs?: number
  readonly observer?: Observer
}

/** The names of {@link PolicyOptions}, for checks. */
export const policyOptionNames: readonly (keyof PolicyOptions)[] = [
  'leaseMs',
  'maxRunMs',
  'retry',
  'retention',
  'storeTimeoutMs',
  'observer',
]

export interface InboxOptions extends PolicyOptions {
  readonly store: Store
  /** Hears of store errors, with their message and cause. */
  readonly onError?: (error: unknown) => void
}

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

/** How a settlement ended: `unavailable` means that the inbox goes on trying by itself. */
export type ClaimSettled = 'ok' | 'lost' | 'unavailable'

/** A claim that this process holds: renewed until it is settled. */
export interface Claim {
  readonly hold: Hold
  readonly attempt: number
  readonly signal: AbortSignal
  renew(): Promise<'ok' | 'lost'>
  completeIn(tx: unknown): Promise<void>
  complete(): Promise<ClaimSettled | 'rolled_back'>
  /** @returns the state that was stored; `completed` when `completeIn` had committed before the handler failed */
  fail(options: {
    readonly code: string
    readonly dead: boolean
  }): Promise<'failed' | 'dead' | 'completed' | 'lost' | 'unavailable'>
  /** Called once when `maxRunMs` is over. */
  onTimeout(callback: () => void): void
}

/** The policy over a store, shared by any number of endpoints. */
export interface Inbox {
  readonly store: Store
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
  const settings = readOptions(where, options)
  const { store, observer, leaseMs, storeTimeoutMs } = settings
  const running = new Set<RunningClaim>()
  const settling = new Set<Promise<void>>()

  function report(operation: StoreOperation, ref: DeliveryRef, error: unknown): void {
    observer({ type: 'store_unavailable', operation, ...ref })
    settings.onError(
      error === timedOut
        ? storeUnavailable(
            `The ${store.name} store did not answer "${operation}" within ${storeTimeoutMs} ms.`,
          )
        : error,
    )
  }

  // A claim that nobody saw would block every copy until its lease ends: take it back until the store has answered.
  async function abandon(key: DeliveryKey, token: string, ref: DeliveryRef): Promise<void> {
    const deadline = performance.now() + leaseMs + storeTimeoutMs
    for (
      let delayMs = 100;
      performance.now() < deadline;
      delayMs = Math.min(delayMs * 2, 5 * second)
    ) {
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
      ...(settings.maxAttempts === undefined ? {} : { maxAttempts: settings.maxAttempts }),
      respectBackoff: settings.inlineBackoffMs !== undefined,
      redeliverDead: request.redeliverDead,
      unfinishedRetentionMs: settings.unfinishedMs,
    } as const
    const askedAtMs = performance.now()
    const answer = await withDeadline(
      () => store.claim([entry]),
      storeTimeoutMs,
      () => track(abandon(key, token, ref)),
    )
    if (!answer.ok) {
      report('claim', ref, answer.error)
      track(abandon(key, token, ref))
      return { status: 'unavailable' }
    }
    const result = answer.value[0]
    if (result === undefined) {
      report(
        'claim',
        ref,
        storeUnavailable(`The ${store.name} store answered a claim with nothing.`),
      )
      return { status: 'unavailable' }
    }
    if (!result.fingerprintMatches) observer({ type: 'fingerprint_differs', ...ref })
    if (result.status !== 'claimed') {
      observer({ type: 'duplicate', state: result.status, ...ref })
      return result
    }
    observer({ type: 'claimed', attempt: result.attempt, fence: result.fence, ...ref })
    const hold = { key, token, fence: result.fence }
    return { status: 'claimed', claim: run(request, hold, result.attempt, askedAtMs) }
  }

  function run(request: OpenRequest, hold: Hold, attempt: number, askedAtMs: number): Claim {
    const { ref } = request
    const abort = new AbortController()
    const claim: RunningClaim = { abort: (reason) => abort.abort(reason) }
    const timeoutCallbacks: (() => void)[] = []
    let settled = false
    let renewing = false
    let completedInTransaction = false
    // Counted from before the question was sent: the store's lease cannot end earlier than this.
    let leaseEndsAtMs = askedAtMs + leaseMs
    running.add(claim)

    const ticker = unref(setInterval(tick, Math.max(1, Math.floor(leaseMs / 3))))
    const runTimer = unref(
      setTimeout(() => {
        if (settled) return
        observer({ type: 'run_timeout', attempt, ...ref })
        claim.abort('timeout')
        for (const callback of timeoutCallbacks) callback()
      }, settings.maxRunMs),
    )

    function tick(): void {
      // While the caller's transaction holds the row, a renewal would only wait for it.
      if (settled || completedInTransaction || renewing) return
      renewing = true
      renew()
        .catch(() => {}) // reported where it happened; the next tick asks again
        .finally(() => {
          renewing = false
        })
    }

    function loseLease(): void {
      if (settled || abort.signal.aborted) return
      observer({ type: 'lease_lost', attempt, ...ref })
      claim.abort('lease_lost')
    }

    async function renew(): Promise<'ok' | 'lost'> {
      if (settled) return 'lost'
      const sentAtMs = performance.now()
      const answer = await withDeadline(() => store.renew(hold, leaseMs), storeTimeoutMs)
      if (settled) return 'lost'
      if (!answer.ok) {
        report('renew', ref, answer.error)
        // The last chance to stop a handler before somebody else may start.
        if (performance.now() + leaseMs / 3 >= leaseEndsAtMs) loseLease()
        throw storeUnavailable(
          `The lease of ${hold.key.provider} delivery could not be renewed.`,
          answer.error,
        )
      }
      if (answer.value === 'lost') {
        loseLease()
        return 'lost'
      }
      leaseEndsAtMs = sentAtMs + leaseMs
      return 'ok'
    }

    function finish(): void {
      settled = true
      clearInterval(ticker)
      clearTimeout(runTimer)
      running.delete(claim)
    }

    // One settlement may outlive its request: the effect has happened, so the truth is told until it is heard.
    async function settle(
      operation: 'complete' | 'fail',
      call: () => Promise<SettleResult>,
    ): Promise<ClaimSettled> {
      clearTimeout(runTimer)
      const first = await withDeadline(call, storeTimeoutMs)
      if (first.ok) {
        finish()
        return first.value === 'lost' ? 'lost' : 'ok'
      }
      report(operation, ref, first.error)
      observer({ type: 'settle_pending', operation, ...ref })
      running.delete(claim)
      track(settleLater(operation, call))
      return 'unavailable'
    }

    async function settleLater(
      operation: 'complete' | 'fail',
      call: () => Promise<SettleResult>,
    ): Promise<void> {
      for (let delayMs = 250; ; delayMs = Math.min(delayMs * 2, 30 * second)) {
        await sleep(delayMs)
        const answer = await withDeadline(call, storeTimeoutMs)
        if (!answer.ok) continue
        finish()
        observer(
          answer.value === 'lost'
            ? { type: 'claim_lost', attempt, durationMs: performance.now() - askedAtMs, ...ref }
            : { type: 'settle_recovered', operation, ...ref },
        )
        return
      }
    }

    async function recordNow(): Promise<'completed' | 'open' | 'lost' | 'unavailable'> {
      const answer = await withDeadline(() => store.get(hold.key), storeTimeoutMs)
      if (!answer.ok) {
        report('get', ref, answer.error)
        return 'unavailable'
      }
      const record = answer.value
      if (record?.state === 'completed') return 'completed'
      return record?.state === 'processing' && record.fence === hold.fence ? 'open' : 'lost'
    }

    const completeOptions = {
      retentionMs: settings.completedMs ?? Math.max(30 * day, request.minRetentionMs),
    }

    return {
      hold,
      attempt,
      signal: abort.signal,
      renew,
      onTimeout: (callback) => void timeoutCallbacks.push(callback),

      async completeIn(tx) {
        if (tx === undefined || tx === null) {
          throw new WebhookInboxError(
            'ERR_TRANSACTION',
            'completeIn(tx) needs the open transaction of your database client.',
          )
        }
        if (settled)
          throw new WebhookInboxError('ERR_CLAIM_LOST', 'This delivery is settled already.')
        const result = await store.complete(hold, completeOptions, tx)
        if (result === 'lost') {
          throw new WebhookInboxError(
            'ERR_CLAIM_LOST',
            'The claim was lost to another holder: let this error roll your transaction back.',
          )
        }
        completedInTransaction = true
      },

      async complete() {
        if (completedInTransaction) {
          const found = await recordNow()
          if (found === 'completed') {
            finish()
            return 'ok'
          }
          if (found === 'unavailable' || found === 'lost') {
            finish()
            return found
          }
          // The transaction was rolled back and the handler swallowed it: the work is not done.
          completedInTransaction = false
          return 'rolled_back'
        }
        const result = await settle('complete', () => store.complete(hold, completeOptions))
        if (result !== 'lost') return result
        return (await recordNow()) === 'completed' ? 'ok' : 'lost'
      },

      async fail({ code, dead }) {
        const spent = settings.maxAttempts !== undefined && attempt >= settings.maxAttempts
        const options: FailOptions =
          dead || spent
            ? { code, retentionMs: settings.deadMs, dead: true }
            : { code, retentionMs: settings.unfinishedMs, retryInMs: settings.inlineBackoffMs ?? 0 }
        const result = await settle('fail', () => store.fail(hold, options))
        if (result === 'ok') return options.dead === true ? 'dead' : 'failed'
        if (result === 'lost' && completedInTransaction && (await recordNow()) === 'completed')
          return 'completed'
        return result
      },
    }
  }

  return Object.freeze({
    store,
    observer,
    open,

    async drain({ timeoutMs = 30 * second } = {}) {
      const until = performance.now() + timeoutMs
      while ((running.size > 0 || settling.size > 0) && performance.now() < until) {
        // Not unref'd: a process that drains means to wait.
        await new Promise((resolve) => setTimeout(resolve, Math.min(20, timeoutMs)))
      }
      for (const claim of running) claim.abort('shutdown')
      return {
        drained: running.size === 0 && settling.size === 0,
        running: running.size + settling.size,
      }
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

interface RunningClaim {
  abort(reason: AbortReason): void
}

const storeMethods = [
  'claim',
  'renew',
  'complete',
  'fail',
  'release',
  'abandon',
  'take',
  'get',
  'list',
  'stats',
  'retry',
  'purge',
  'setup',
  'close',
] as const satisfies readonly (keyof Store)[]

/** Refuses what is not a store, with the fix in the message. */
export function checkStore(where: string, store: unknown): asserts store is Store {
  if (store === undefined || store === null) {
    throw optionError(
      `${where}: "store" is missing. Pass one, for instance store: sqliteStore({ path: 'inbox.db' }) from @webhook-inbox/sqlite, or memoryStore() in tests.`,
    )
  }
  const candidate = typeof store === 'object' ? store : {}
  const absent = storeMethods.filter((name) => typeof Reflect.get(candidate, name) !== 'function')
  if (absent.length > 0) {
    throw optionError(
      `${where}: "store" is not a store (it lacks ${absent.join(', ')}). Pass what sqliteStore(), memoryStore() or another store factory returns, not a client or a promise.`,
    )
  }
}

function readOptions(where: string, options: InboxOptions) {
  if (typeof options !== 'object' || options === null)
    throw optionError(`${where}: pass an object with a store: { store }.`)
  rejectUnknownOptions(where, options, ['store', 'onError', ...policyOptionNames])
  checkStore(where, options.store)
  functionOption(where, 'observer', options.observer)
  functionOption(where, 'onError', options.onError)
  const retry = options.retry ?? {}
  const retention = options.retention ?? {}
  rejectUnknownOptions(`${where}: "retry"`, retry, ['maxAttempts', 'inlineBackoffMs'])
  rejectUnknownOptions(`${where}: "retention"`, retention, [
    'completedMs',
    'deadMs',
    'unfinishedMs',
  ])
  const { onError } = options
  return Object.freeze({
    store: options.store,
    observer: quietObserver(options.observer),
    onError: (error: unknown): void => swallow(() => onError?.(error)),
    leaseMs: durationOption(where, 'leaseMs', options.leaseMs, 30 * second),
    maxRunMs: durationOption(where, 'maxRunMs', options.maxRunMs, 900 * second),
    storeTimeoutMs: durationOption(where, 'storeTimeoutMs', options.storeTimeoutMs, 2 * second),
    maxAttempts: countOption(where, 'retry.maxAttempts', retry.maxAttempts),
    inlineBackoffMs:
      retry.inlineBackoffMs === undefined
        ? undefined
        : durationOption(where, 'retry.inlineBackoffMs', retry.inlineBackoffMs, 10 * second),
    completedMs:
      retention.completedMs === undefined
        ? undefined
        : retentionOption(where, 'retention.completedMs', retention.completedMs, 30 * day),
    deadMs: retentionOption(where, 'retention.deadMs', retention.deadMs, 14 * day),
    unfinishedMs: retentionOption(
      where,
      'retention.unfinishedMs',
      retention.unfinishedMs,
      14 * day,
    ),
  })
}
