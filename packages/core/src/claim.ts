/** A claim that this process holds: renewed until it is settled. */
import { sleep, unref, withDeadline } from './deadline.ts'
import type { AbortReason } from './delivery.ts'
import { storeUnavailable, WebhookInboxError } from './errors.ts'
import type { DeliveryRef, StoreOperation } from './observer.ts'
import type { Policy } from './policy.ts'
import type { FailOptions, Hold, SettleResult, StoredPayload } from './store.ts'
import { renewResultOf, settleResultOf } from './store-answer.ts'

export interface Claim {
  readonly hold: Hold
  readonly attempt: number
  readonly signal: AbortSignal
  renew(): Promise<'ok' | 'lost'>
  completeIn(tx: unknown): Promise<void>
  /**
   * - `completed`: stored
   * - `completed_elsewhere`: the holder that took over has completed it
   * - `lost`: somebody else holds the claim and has not completed it
   * - `unavailable`: the store did not answer; the claim goes on telling it
   * - `unknown`: `completeIn` was called, and nobody answers whether that transaction committed
   * - `rolled_back`: `completeIn` was called and its transaction is not there, or not yet: `fail` tells
   */
  complete(): Promise<
    'completed' | 'completed_elsewhere' | 'lost' | 'unavailable' | 'unknown' | 'rolled_back'
  >
  /** `completed`: `completeIn` had committed before the handler failed. */
  fail(options: {
    readonly code: string
    readonly dead: boolean
    /** Stored with the record when it is dead now. */
    readonly deadPayload?: StoredPayload
    /** When it is due again. @default the inline backoff, or at once */
    readonly retryInMs?: number
    /** It is dead when this attempt was that many. @default the inbox's own limit */
    readonly maxAttempts?: number
  }): Promise<'failed' | 'dead' | 'completed' | 'lost' | 'unavailable'>
  /** Gives back what never started, or was stopped by a shutdown: the attempt is not counted. Never rejects. */
  release(): Promise<void>
  abort(reason: AbortReason): void
  /** Called once when `maxRunMs` is over. */
  onTimeout(callback: () => void): void
}

/** What a claim needs of its inbox. */
export interface ClaimContext {
  readonly policy: Policy
  readonly ref: DeliveryRef
  readonly hold: Hold
  readonly attempt: number
  /** `performance.now()` from before the store was asked: the lease cannot end earlier than counted from here. */
  readonly askedAtMs: number
  /** How long the record is kept once it is completed. */
  readonly completedRetentionMs: number
  report(operation: StoreOperation, ref: DeliveryRef, error: unknown): void
  /** The run is over; `rest` is what is left to tell the store. */
  onEnd(claim: Claim, rest?: Promise<void>): void
}

const firstRetryMs = 250
const longestRetryMs = 30_000

/** Starts renewing a fresh claim, and hands out the operations that settle it. */
export function holdClaim(context: ClaimContext): Claim {
  const { policy, ref, hold, attempt, askedAtMs } = context
  const { store, observer, leaseMs, storeTimeoutMs } = policy
  const completeOptions = {
    retentionMs: context.completedRetentionMs,
    ...(policy.payloadMs === undefined ? {} : { payloadRetentionMs: policy.payloadMs }),
  }
  const abortController = new AbortController()
  const timeoutCallbacks: (() => void)[] = []
  let settled = false
  let renewing = false
  let completedInTransaction = false
  let joining: Promise<void> | undefined
  let leaseEndsAtMs = askedAtMs + leaseMs

  const thirdMs = Math.max(1, Math.floor(leaseMs / 3))
  const ticker = unref(setInterval(tick, thirdMs))
  const runTimer = unref(setTimeout(expire, policy.maxRunMs))

  function expire(): void {
    observer({ type: 'run_timeout', attempt, ...ref })
    claim.abort('timeout')
    for (const callback of timeoutCallbacks) callback()
  }

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

  async function renew(): Promise<'ok' | 'lost'> {
    if (settled) return 'lost'
    const sentAtMs = performance.now()
    const answer = await withDeadline(
      async () => renewResultOf(store, await store.renew(hold, leaseMs)),
      // No longer, or the lease would end before its holder hears that it could not be renewed.
      Math.min(storeTimeoutMs, thirdMs),
    )
    if (settled) return 'lost'
    if (!answer.ok) {
      context.report('renew', ref, answer.error)
      // The last chance to stop a handler before somebody else may start.
      if (performance.now() + thirdMs >= leaseEndsAtMs) loseLease()
      throw storeUnavailable('The lease could not be renewed.', answer.error)
    }
    if (answer.value === 'lost') {
      loseLease()
      return 'lost'
    }
    leaseEndsAtMs = sentAtMs + leaseMs
    return 'ok'
  }

  function loseLease(): void {
    if (abortController.signal.aborted) return
    observer({ type: 'lease_lost', attempt, ...ref })
    claim.abort('lease_lost')
  }

  function finish(): void {
    settled = true
    clearInterval(ticker)
    clearTimeout(runTimer)
    context.onEnd(claim)
  }

  async function settle(
    operation: 'complete' | 'fail' | 'release',
    ask: () => Promise<SettleResult>,
  ): Promise<'ok' | 'lost' | 'unavailable'> {
    clearTimeout(runTimer)
    const call = async (): Promise<SettleResult> => settleResultOf(store, operation, await ask())
    const answer = await withDeadline(call, storeTimeoutMs)
    if (answer.ok) {
      finish()
      return answer.value === 'lost' ? 'lost' : 'ok'
    }
    context.report(operation, ref, answer.error)
    observer({ type: 'settle_pending', operation, ...ref })
    context.onEnd(claim, settleLater(operation, call))
    return 'unavailable'
  }

  // What happened has happened: the store is told until it hears it, and the lease is renewed meanwhile.
  async function settleLater(
    operation: 'complete' | 'fail' | 'release',
    call: () => Promise<SettleResult>,
  ): Promise<void> {
    for (let delayMs = firstRetryMs; ; delayMs = Math.min(delayMs * 2, longestRetryMs)) {
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

  async function readState(): Promise<
    'completed' | 'completed_elsewhere' | 'open' | 'lost' | 'unknown'
  > {
    const answer = await withDeadline(() => store.get(hold.key), storeTimeoutMs)
    if (!answer.ok) {
      context.report('get', ref, answer.error)
      return 'unknown'
    }
    const record = answer.value
    const isOurs = record?.fence === hold.fence
    if (record?.state === 'completed') return isOurs ? 'completed' : 'completed_elsewhere'
    return record?.state === 'processing' && isOurs ? 'open' : 'lost'
  }

  function completeIn(tx: unknown): Promise<void> {
    const joined = join(tx)
    joining = joined.catch(() => {})
    // A promise of its own: an error that the handler does not await stays an unhandled one.
    return joined.then(() => {})
  }

  // A handler that does not await completeIn() must not be taken for one that never called it.
  async function awaitJoining(): Promise<void> {
    const pending = joining
    if (pending !== undefined) await withDeadline(() => pending, storeTimeoutMs)
  }

  async function join(tx: unknown): Promise<void> {
    if (tx === undefined || tx === null) {
      throw new WebhookInboxError(
        'ERR_TRANSACTION',
        'completeIn(tx) needs the open transaction of your database client.',
      )
    }
    if (settled) {
      throw new WebhookInboxError('ERR_CLAIM_LOST', 'This delivery is settled already.')
    }
    const answer = await store.complete(hold, completeOptions, tx)
    if (settleResultOf(store, 'complete', answer) === 'lost') {
      throw new WebhookInboxError(
        'ERR_CLAIM_LOST',
        'Another holder has the claim: let this error roll your transaction back.',
      )
    }
    completedInTransaction = true
  }

  async function sealed(options: FailOptions): Promise<FailOptions> {
    const { payload } = options
    if (payload === undefined || policy.seal === undefined) return options
    return { ...options, payload: await policy.seal.seal(hold.key, payload) }
  }

  // The transaction is the caller's: only the record tells whether it committed.
  async function completeAfterTransaction(): ReturnType<Claim['complete']> {
    const state = await readState()
    if (state === 'open') return 'rolled_back'
    finish()
    return state
  }

  const claim: Claim = {
    hold,
    attempt,
    signal: abortController.signal,
    renew,
    completeIn,
    abort: (reason) => abortController.abort(reason),
    onTimeout: (callback) => void timeoutCallbacks.push(callback),

    async complete() {
      await awaitJoining()
      if (completedInTransaction) return completeAfterTransaction()
      const result = await settle('complete', () => store.complete(hold, completeOptions))
      if (result === 'unavailable') return result
      if (result === 'ok') return 'completed'
      const state = await readState()
      return state === 'completed' || state === 'completed_elsewhere' ? state : 'lost'
    },

    async fail({ code, dead, deadPayload, retryInMs, maxAttempts = policy.maxAttempts }) {
      await awaitJoining()
      const spent = maxAttempts !== undefined && attempt >= maxAttempts
      const durationMs = Math.round(performance.now() - askedAtMs)
      const options: FailOptions =
        dead || spent
          ? {
              code,
              durationMs,
              retentionMs: policy.deadMs,
              dead: true,
              ...(deadPayload === undefined ? {} : { payload: deadPayload }),
            }
          : {
              code,
              durationMs,
              retentionMs: policy.unfinishedMs,
              retryInMs: retryInMs ?? policy.inlineBackoffMs ?? 0,
            }
      const result = await settle('fail', async () => store.fail(hold, await sealed(options)))
      if (result === 'ok') return options.dead === true ? 'dead' : 'failed'
      if (result === 'lost' && completedInTransaction && (await readState()) === 'completed') {
        return 'completed'
      }
      return result
    },

    async release() {
      await awaitJoining()
      // What it did is in a transaction that may have committed: only the end of the lease can tell.
      if (completedInTransaction) return finish()
      await settle('release', () => store.release(hold))
    },
  }
  // The claim took part of its lease already: the first renewal must not come after its end.
  if (performance.now() - askedAtMs >= thirdMs) tick()
  return claim
}
