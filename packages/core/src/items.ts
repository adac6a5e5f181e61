/** The events of a request that holds several: one claim each, asked for in one batch, run together. */
import type { Claim } from './claim.ts'
import { utf8 } from './crypto/bytes.ts'
import type { AbortReason, DeliveryItem, DeliveryKey } from './delivery.ts'
import { WebhookInboxError } from './errors.ts'
import type { Inbox, OpenResult } from './inbox.ts'
import type { DeliveryRef } from './observer.ts'
import { type ParsedItem, writeJson } from './providers/parse.ts'
import type { StoredPayload } from './store.ts'
import { withNotes } from './stored-headers.ts'

/** What became of the items of a request. */
export type OpenedItems =
  | { readonly status: 'unavailable' }
  /** None is new. `busyMs`: when to ask again, where one is not done. */
  | {
      readonly status: 'copies'
      readonly busyMs: number | undefined
      readonly busy: readonly ParsedItem[]
    }
  | { readonly status: 'claimed'; readonly items: ItemClaims }

/** The delivery that a worker has taken, with its items: one claim for all of them and for itself. */
export function joinOwner(owner: Claim, joined: ItemClaims): ItemClaims {
  const { claim: items, unfinished } = joined
  const signal = AbortSignal.any([owner.signal, items.signal])
  return {
    ...joined,
    claim: {
      ...items,
      hold: owner.hold,
      attempt: owner.attempt,
      signal,
      async renew() {
        const results = await Promise.all([owner.renew(), items.renew()])
        return results.includes('lost') ? 'lost' : 'ok'
      },
      async completeIn(tx) {
        await items.completeIn(tx)
        // Otherwise it has to be run again for what is not done.
        if (!unfinished()) await owner.completeIn(tx)
      },
      abort(reason) {
        owner.abort(reason)
        items.abort(reason)
      },
      onTimeout: (callback) => owner.onTimeout(callback),
    },
  }
}

/** The claims of a request's new items, as one claim and one by one. */
export interface ItemClaims {
  /** Settles all that are not settled one by one. */
  readonly claim: Claim
  /** What the handler gets. */
  readonly list: readonly DeliveryItem[]
  /** Those that somebody else has in hand. */
  readonly busy: readonly ParsedItem[]
  /** Whether an item failed, or was lost. */
  failed(): boolean
  /** Whether an item is not done and must come again: one that failed, or that somebody else has in hand. */
  unfinished(): boolean
}

/** Asks for a claim on every item, in one call of the store. */
export async function openItems({
  inbox,
  batch,
  items,
  minRetentionMs,
  redeliverDead,
  stored = false,
  keep,
  onError,
}: {
  readonly inbox: Inbox
  /** The key and the ref of the whole request. */
  readonly batch: { readonly key: DeliveryKey; readonly ref: DeliveryRef }
  readonly items: readonly ParsedItem[]
  readonly minRetentionMs: number
  readonly redeliverDead: boolean
  /** A worker runs a stored request: its schedule and its attempts count, not those of the items. @default false */
  readonly stored?: boolean
  /** With what the bytes of an item that is dead are kept. @default they are not */
  readonly keep?: ItemKeep | undefined
  readonly onError: (error: unknown) => void
}): Promise<OpenedItems> {
  const { provider, endpoint } = batch.key
  const asked = items.map((item) => {
    const key: DeliveryKey = { provider, endpoint, deliveryId: item.id }
    const ref: DeliveryRef = { provider, endpoint, deliveryId: item.id, event: item.event }
    return { item, key, ref, minRetentionMs, redeliverDead, stored }
  })
  const results = await inbox.openAll(asked)
  const claimed: ClaimedItem[] = []
  const busy: ParsedItem[] = []
  let busyMs: number | undefined
  for (const [index, { item, key, ref }] of asked.entries()) {
    const result = results[index]
    // One call for all: the store has answered for each, or for none.
    if (result === undefined || result.status === 'unavailable') return { status: 'unavailable' }
    if (result.status === 'claimed') claimed.push({ item, key, ref, claim: result.claim })
    else if (result.status !== 'completed' && result.status !== 'dead') {
      busy.push(item)
      busyMs = Math.max(busyMs ?? 0, waitOf(result))
    }
  }
  if (claimed.length === 0) return { status: 'copies', busyMs, busy }
  return { status: 'claimed', items: joinItems(claimed, { busy, stored, keep, inbox, onError }) }
}

/** One item whose own record a worker has taken; `retry` says when it is due again after a failure. */
export function soleItem(
  claimed: ClaimedItem,
  options: {
    readonly retry: ItemRetry
    readonly inbox: Inbox
    readonly onError: (error: unknown) => void
  },
): ItemClaims {
  return joinItems([claimed], { ...options, busy: [], stored: false, keep: undefined })
}

type ItemRetry = Pick<Parameters<Claim['fail']>[0], 'maxAttempts' | 'retryInMs'>

// What is stored counts its own attempts, and is due by its own schedule.
const byOwner: ItemRetry = { maxAttempts: Number.POSITIVE_INFINITY, retryInMs: 0 }

/** What is stored with an item that is dead: these headers of its request, and the event of the whole. */
export interface ItemKeep {
  readonly headers: Readonly<Record<string, string>>
  readonly event: string
}

// Its own JSON, not the request's: a request of thousands would be stored thousands of times.
function payloadOf({ payload }: ParsedItem, keep: ItemKeep): StoredPayload | undefined {
  const json = writeJson(payload)
  if (json === undefined) return undefined
  return { body: utf8(json), headers: withNotes(keep.headers, { itemOf: keep.event }) }
}

export interface ClaimedItem {
  readonly item: ParsedItem
  readonly key: DeliveryKey
  readonly ref: DeliveryRef
  readonly claim: Claim
}

const unknownWaitMs = 1000

function waitOf(result: Exclude<OpenResult, { status: 'claimed' | 'unavailable' }>): number {
  if (result.status === 'processing') return result.leaseMs
  return result.status === 'waiting' ? result.retryInMs : unknownWaitMs
}

type ItemState = 'open' | 'completed' | 'failed' | 'dead' | 'lost'

function joinItems(
  claimed: readonly ClaimedItem[],
  {
    busy,
    stored,
    keep,
    retry = stored ? byOwner : {},
    inbox,
    onError,
  }: {
    readonly busy: readonly ParsedItem[]
    readonly stored: boolean
    readonly keep: ItemKeep | undefined
    readonly retry?: ItemRetry
    readonly inbox: Inbox
    readonly onError: (error: unknown) => void
  },
): ItemClaims {
  const { observer } = inbox
  const startedAtMs = performance.now()
  const states = new Map<ClaimedItem, ItemState>(claimed.map((one) => [one, 'open']))
  const settling = new Map<ClaimedItem, Promise<unknown>>()

  // A handler need not await what it says of an item: the end of the request must not overtake it.
  async function open(): Promise<readonly ClaimedItem[]> {
    await Promise.allSettled(settling.values())
    return stillOpen()
  }

  function stillOpen(): readonly ClaimedItem[] {
    return claimed.filter((one) => states.get(one) === 'open')
  }

  async function settleOnce<Result>(
    one: ClaimedItem,
    settle: () => Promise<Result>,
  ): Promise<Result | undefined> {
    if (states.get(one) !== 'open') return undefined
    const before = settling.get(one)
    if (before !== undefined) {
      await before
      return undefined
    }
    const work = settle().finally(() => settling.delete(one))
    settling.set(one, work)
    return work
  }

  function settled(one: ClaimedItem, state: Exclude<ItemState, 'open'>, code: string): void {
    states.set(one, state)
    const durationMs = performance.now() - startedAtMs
    const { attempt } = one.claim
    if (state === 'lost') observer({ type: 'claim_lost', attempt, durationMs, ...one.ref })
    else if (state === 'completed') observer({ type: state, attempt, durationMs, ...one.ref })
    else observer({ type: state, attempt, durationMs, code, ...one.ref })
  }

  async function complete(one: ClaimedItem): Promise<Awaited<ReturnType<Claim['complete']>>> {
    const result = await one.claim.complete()
    if (result === 'completed' || result === 'completed_elsewhere') settled(one, 'completed', '')
    else if (result === 'lost') settled(one, 'lost', '')
    // The claim goes on telling the store: the work is done.
    else if (result === 'unavailable') states.set(one, 'completed')
    return result
  }

  async function fail(
    one: ClaimedItem,
    options: Parameters<Claim['fail']>[0],
  ): Promise<Awaited<ReturnType<Claim['fail']>>> {
    const kept = keep === undefined ? undefined : payloadOf(one.item, keep)
    const result = await one.claim.fail({
      ...options,
      ...(kept === undefined ? {} : { deadPayload: kept }),
    })
    if (result === 'unavailable') states.set(one, options.dead ? 'dead' : 'failed')
    else settled(one, result, options.code)
    return result
  }

  const [first] = claimed
  if (first === undefined) throw new TypeError('A batch without a claim has nothing to run.')
  const signal = AbortSignal.any(claimed.map(({ claim }) => claim.signal))

  const claim: Claim = {
    hold: { ...first.claim.hold, fence: largest(claimed, (one) => one.claim.hold.fence) },
    attempt: largest(claimed, (one) => one.claim.attempt),
    signal,
    async renew() {
      const results = await Promise.all(stillOpen().map((one) => one.claim.renew()))
      return results.includes('lost') ? 'lost' : 'ok'
    },
    async completeIn(tx) {
      // One after another: they share the caller's one connection.
      for (const one of await open()) await one.claim.completeIn(tx)
    },
    async complete() {
      return worst(await Promise.all((await open()).map(complete)), completions) ?? 'completed'
    },
    async fail(options) {
      // A stored request is dead as a whole, and can be run again as a whole.
      const own = stored ? { ...options, ...retry, dead: false } : options
      const results = await Promise.all((await open()).map((one) => fail(one, own)))
      return worst(results, failures) ?? (options.dead ? 'dead' : 'failed')
    },
    async release() {
      await Promise.all((await open()).map((one) => one.claim.release()))
    },
    abort(reason: AbortReason) {
      for (const one of stillOpen()) one.claim.abort(reason)
    },
    onTimeout(callback) {
      let isOver = false
      // The first that is not settled by then: their times began together.
      for (const one of claimed) {
        one.claim.onTimeout(() => {
          if (isOver || states.get(one) !== 'open') return
          isOver = true
          callback()
        })
      }
    },
  }

  const list = claimed.map((one): DeliveryItem => {
    const { item, key } = one
    return {
      id: item.id,
      event: item.event,
      payload: item.payload,
      key,
      attempt: one.claim.attempt,
      fence: one.claim.hold.fence,
      async complete() {
        if ((await settleOnce(one, () => complete(one))) === 'lost') {
          throw new WebhookInboxError(
            'ERR_CLAIM_LOST',
            'Another holder has the claim of this item.',
          )
        }
      },
      async fail(error, { retryable = true } = {}) {
        if (states.get(one) !== 'open') return
        if (error !== undefined) onError(error)
        await settleOnce(one, () =>
          fail(one, { ...retry, code: 'handler_failed', dead: !retryable }),
        )
      },
    }
  })

  const failed = (): boolean =>
    [...states.values()].some((state) => state === 'failed' || state === 'lost')
  return { claim, list, busy, failed, unfinished: () => busy.length > 0 || failed() }
}

// Not Math.max(...): a call has no room for a hundred thousand arguments.
function largest<One>(list: readonly One[], numberOf: (one: One) => number): number {
  return list.reduce((most, one) => Math.max(most, numberOf(one)), 0)
}

const completions = [
  'unknown',
  'rolled_back',
  'lost',
  'unavailable',
  'completed_elsewhere',
  'completed',
] as const
const failures = ['lost', 'unavailable', 'failed', 'dead', 'completed'] as const

function worst<Word extends string>(
  results: readonly Word[],
  order: readonly Word[],
): Word | undefined {
  return order.find((word) => results.includes(word))
}
