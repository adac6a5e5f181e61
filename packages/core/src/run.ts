/** The run of a claimed delivery: what the handler gets, and how its end is settled. */
import { backend } from '#crypto'
import type { Claim } from './claim.ts'
import { toHex, utf8 } from './crypto/bytes.ts'
import type { ClaimedDelivery, Delivery, DeliveryItem, DeliveryKey } from './delivery.ts'
import { isPermanentError, optionError } from './errors.ts'
import type { DeliveryRef } from './observer.ts'
import { isSettleAs, type RunEnd, type SettleAs, settleAs } from './outcome.ts'
import type { Handler, ReceiverSettings } from './receiver-options.ts'
import { type Answer, runProblemAnswer, stopHeaders, withHeaders } from './response.ts'
import type { StoredPayload } from './store.ts'

/** A delivery to be run now, by the caller, who then settles it. */
export interface ClaimedReceipt<Webhook extends ClaimedDelivery = ClaimedDelivery> {
  readonly status: 'claimed'
  readonly webhook: Webhook
  /** Settles by the final answer. The first call decides; later ones get the same settlement. Never rejects. */
  settle(end: RunEnd): Promise<Settlement>
  /** Called once when `maxRunMs` is over and the delivery was settled as failed. */
  onTimeout(callback: (settlement: Settlement) => void): void
  /** Tells the observer that the answer could not be held until it was settled. */
  reportUnheld(): void
}

/** How a claim ended, for the adapter that has an answer in its hands. */
export interface Settlement {
  readonly state: 'completed' | 'failed' | 'dead' | 'lost' | 'processing'
  /** Send this in place of the handler's own answer. */
  readonly replace?: Answer
  /** Set these on the handler's own answer. */
  readonly headers?: Readonly<Record<string, string>>
}

/** What a run is made of. */
export interface RunInput {
  readonly settings: ReceiverSettings
  readonly delivery: Delivery
  readonly key: DeliveryKey
  readonly ref: DeliveryRef
  readonly claim: Claim
  /** Start of every idempotency key of this delivery. */
  readonly keySeed: string
  /** Stored with the record when it is dead. Of several events each keeps its own. */
  readonly kept?: StoredPayload | undefined
  /** Of a request that holds several events: those that are new, and whether one of all is not done. */
  readonly items?: { readonly list: readonly DeliveryItem[]; unfinished(): boolean } | undefined
}

const claimedDeliveries = new WeakSet<object>()

/** Whether a value that a framework's request carries is a delivery that was claimed here. */
export function isClaimedDelivery(value: unknown): value is ClaimedDelivery {
  return typeof value === 'object' && value !== null && claimedDeliveries.has(value)
}

/** A run inside the run of another middleware that has claimed the same delivery: what it answers settles that one. */
export function createInnerRun<Webhook extends ClaimedDelivery>(
  webhook: ClaimedDelivery,
): ClaimedReceipt<Webhook> {
  return {
    status: 'claimed',
    webhook: webhook as Webhook,
    settle: async (end) => ({ state: stateAfter[settleAs(end, undefined)] }),
    onTimeout() {},
    reportUnheld() {},
  }
}

const stateAfter = { complete: 'completed', retry: 'failed', dead: 'dead' } as const

/** What a handler gets: the delivery and what can be done with its claim. */
export function claimedDelivery({
  delivery,
  key,
  claim,
  keySeed,
  items,
  onFail,
}: Pick<RunInput, 'delivery' | 'key' | 'claim' | 'keySeed' | 'items'> & {
  onFail(error: unknown, retryable: boolean): void
}): ClaimedDelivery {
  const webhook: ClaimedDelivery = {
    ...delivery,
    key,
    ...(items === undefined ? {} : { items: items.list }),
    attempt: claim.attempt,
    fence: claim.hold.fence,
    signal: claim.signal,
    idempotencyKey: (purpose) => idempotencyKeyOf(keySeed, purpose),
    completeIn: (tx) => claim.completeIn(tx),
    renew: () => claim.renew(),
    fail: (error, { retryable = true } = {}) => onFail(error, retryable),
  }
  claimedDeliveries.add(webhook)
  return webhook
}

/** Start of every idempotency key of a delivery: the same in every process and attempt. */
export async function idempotencySeed(key: DeliveryKey): Promise<string> {
  const text = JSON.stringify([key.provider, key.endpoint, key.deliveryId])
  return toHex(await backend.digest('SHA-256', utf8(text))).slice(0, 32)
}

/** Wraps a claim in what a handler and an adapter need. */
export function createRun<Webhook extends ClaimedDelivery>(
  input: RunInput,
): ClaimedReceipt<Webhook> {
  const { settings, delivery, key, ref, claim, keySeed, kept, items } = input
  const { provider } = settings
  const { observer } = settings.inbox
  const { attempt } = claim
  const startedAtMs = performance.now()
  const timeoutCallbacks: ((settlement: Settlement) => void)[] = []
  // What the handler said through webhook.fail().
  let failure: { readonly retryable: boolean } | undefined
  let settlement: Promise<Settlement> | undefined

  const webhook = claimedDelivery({
    delivery,
    key,
    claim,
    keySeed,
    items,
    onFail(error, retryable) {
      failure = { retryable }
      if (error !== undefined) settings.onError(error)
    },
  })

  async function complete(): Promise<Settlement> {
    const result = await claim.complete()
    if (result === 'rolled_back') {
      // The handler swallowed the rollback: the work is not done, whatever it answered.
      const state = await failed('transaction_rolled_back', false)
      // It was committed after the handler's end, which the failure had to wait for.
      if (state === 'completed') return { state }
      return { state, replace: runProblemAnswer(503, 'transaction_rolled_back', state) }
    }
    const durationMs = performance.now() - startedAtMs
    if (result === 'lost' || result === 'completed_elsewhere') {
      observer({ type: 'claim_lost', attempt, durationMs, ...ref })
      return result === 'completed_elsewhere'
        ? { state: 'completed' }
        : { state: 'lost', replace: runProblemAnswer(503, 'claim_lost', 'lost') }
    }
    // Nobody can say whether the work was committed: a 2xx now could lose it, and a copy will learn the truth.
    if (result === 'unknown') {
      return {
        state: 'processing',
        replace: runProblemAnswer(503, 'completion_unknown', 'processing'),
      }
    }
    if (items?.unfinished() === true)
      return { state: 'failed', replace: runProblemAnswer(503, 'items_unfinished', 'failed') }
    // The effect has happened, so the handler's own answer goes out; the inbox goes on telling the store.
    if (result === 'unavailable') return { state: 'processing' }
    observer({ type: 'completed', attempt, durationMs, ...ref })
    return { state: 'completed' }
  }

  async function failed(
    code: string,
    dead: boolean,
  ): Promise<'failed' | 'dead' | 'lost' | 'completed'> {
    const result = await claim.fail({
      code,
      dead,
      ...(kept === undefined ? {} : { deadPayload: kept }),
    })
    const durationMs = performance.now() - startedAtMs
    if (result === 'lost') {
      observer({ type: 'claim_lost', attempt, durationMs, ...ref })
      return 'lost'
    }
    if (result === 'completed') {
      observer({ type: 'completed', attempt, durationMs, ...ref })
      return 'completed'
    }
    // Not stored yet: the inbox goes on telling the store, and the observer has heard so.
    if (result === 'unavailable') return dead ? 'dead' : 'failed'
    observer({ type: result, attempt, durationMs, code, ...ref })
    return result
  }

  function askSettleBy(status: number): SettleAs | undefined {
    try {
      const chosen = settings.settleBy?.(status)
      if (chosen === undefined || isSettleAs(chosen)) return chosen
      throw optionError(`settleBy must return 'complete', 'retry', 'dead' or undefined.`)
    } catch (error) {
      settings.onError(error)
      return undefined
    }
  }

  async function settleOnce(end: RunEnd | 'timeout'): Promise<Settlement> {
    const durationMs = performance.now() - startedAtMs
    if (durationMs > settings.ackDeadlineMs)
      observer({ type: 'warning', code: 'ack_deadline_passed', ...ref })
    if (end === 'timeout') {
      const state = await failed('run_timeout', false)
      return { state, replace: runProblemAnswer(503, 'run_timeout', state) }
    }
    let decision = settleAs(end, askSettleBy(end.status))
    if (failure !== undefined) decision = failure.retryable ? 'retry' : 'dead'
    if (decision === 'complete') return complete()
    if (end.status === 404 || end.status === 405)
      observer({ type: 'no_handler', status: end.status, ...ref })
    const code = failure !== undefined ? 'handler_failed' : `status_${end.status}`
    const state = await failed(code, decision === 'dead')
    // Items that are in hand elsewhere, or have failed on their own, must come again.
    if (decision === 'dead' && items?.unfinished() === true)
      return { state, replace: runProblemAnswer(503, 'items_unfinished', state) }
    // A status after which this sender never tries again would lose what is to run again.
    if (decision === 'retry' && state !== 'completed' && state !== 'dead' && isStop(end.status))
      return { state, replace: runProblemAnswer(503, 'handler_failed', state) }
    const headers = state === 'dead' ? stopHeaders(provider) : undefined
    // A 2xx would end the sender's retries although the work is not done.
    if (end.status >= 400 || state === 'completed')
      return headers === undefined ? { state } : { state, headers }
    return decision === 'dead'
      ? { state, replace: withHeaders(runProblemAnswer(422, 'handler_rejected', state), headers) }
      : { state, replace: runProblemAnswer(503, 'handler_failed', state) }
  }

  function isStop(status: number): boolean {
    return provider.stopStatuses?.includes(status) === true
  }

  claim.onTimeout(() => {
    settlement ??= settleOnce('timeout')
    settlement.then((settled) => {
      for (const callback of timeoutCallbacks) callback(settled)
    })
  })

  return {
    status: 'claimed',
    // What the payload holds is the sender's word: the type parameter says it, nothing checks it.
    webhook: webhook as Webhook,
    settle(end) {
      settlement ??= settleOnce(end)
      return settlement
    },
    onTimeout: (callback) => void timeoutCallbacks.push(callback),
    reportUnheld: () => observer({ type: 'response_unheld', ...ref }),
  }
}

/** What a run without a route is answered with. */
export interface RunAnswers {
  readonly onError: (error: unknown) => void
  doneAnswer(state: 'completed' | 'processing', deliveryId: string): Answer
}

/** Runs a handler that owns the outcome: its promise decides, not a status. */
export async function runHandler<Context, Webhook extends ClaimedDelivery>(
  handler: Handler<Context, Webhook>,
  receipt: ClaimedReceipt<Webhook>,
  context: Context,
  { onError, doneAnswer }: RunAnswers,
): Promise<{
  readonly status: Settlement['state']
  readonly deliveryId: string
  readonly answer: Answer
}> {
  const deliveryId = receipt.webhook.id

  async function ownEnd(): Promise<readonly [Settlement, Answer]> {
    try {
      await handler(receipt.webhook, context)
    } catch (error) {
      onError(error)
      const status = isPermanentError(error) ? 422 : 500
      const settlement = await receipt.settle({ status, error })
      // completeIn() had committed before the handler threw: the work is done.
      if (settlement.state === 'completed') return [settlement, doneAnswer('completed', deliveryId)]
      const code = status === 422 ? 'handler_rejected' : 'handler_failed'
      const answer = runProblemAnswer(status, code, settlement.state)
      return [settlement, withHeaders(answer, settlement.headers)]
    }
    const settlement = await receipt.settle({ status: 200 })
    const known = settlement.state === 'processing' ? 'processing' : 'completed'
    return [settlement, doneAnswer(known, deliveryId)]
  }

  const expiry = new Promise<readonly [Settlement, Answer]>((resolve) => {
    receipt.onTimeout((late) => resolve([late, runProblemAnswer(503, 'run_timeout', late.state)]))
  })
  const [settlement, own] = await Promise.race([ownEnd(), expiry])
  return { status: settlement.state, deliveryId, answer: settlement.replace ?? own }
}

function idempotencyKeyOf(seed: string, purpose: string | undefined): string {
  if (purpose === undefined) return `whi_${seed}`
  if (!/^[A-Za-z0-9_.:-]{1,128}$/.test(purpose)) {
    throw optionError(
      'idempotencyKey(purpose): use 1 to 128 characters of A-Z, a-z, 0-9, "_", ".", ":" and "-".',
    )
  }
  return `whi_${seed}_${purpose}`
}
