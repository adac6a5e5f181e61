/** Micro-batching: calls that arrive together travel together. No timer waits for a batch to fill. */
import { timedOut, withDeadline } from './deadline.ts'
import { hasCode, storeUnavailable } from './errors.ts'

export interface BatchOptions<Entry, Result> {
  /**
   * Sends entries, sorted by key, no two of one key, and answers in their order. When it rejects with
   * `ERR_STORE_UNAVAILABLE` the whole batch is unavailable; on any other error the batch is halved until the entry
   * that cannot be sent stands alone.
   */
  send(entries: readonly Entry[]): Promise<readonly Result[]>
  keyOf(entry: Entry): string
  /**
   * The answer to a later entry of a key, by the answer of the one that was sent. Without it, or where it gives
   * undefined, the later entry goes with the next batch. When the first cannot be sent neither can the later.
   */
  merge?(result: Result, later: Entry, first: Entry): Result | undefined
  /** Bytes that the entry adds to a batch. @default 0 */
  sizeOf?(entry: Entry): number
  /** @default 200 */
  readonly maxEntries?: number
  /** A larger entry goes alone. @default 1000000 */
  readonly maxBytes?: number
  /** While this many batches are under way, what arrives waits and goes together. @default 2 */
  readonly maxInFlight?: number
  /** An entry that has waited this long is refused, not sent; a batch that takes this long is given up. */
  readonly timeoutMs: number
}

interface Waiting<Entry, Result> {
  readonly entry: Entry
  readonly key: string
  readonly size: number
  readonly deadlineMs: number
  readonly later: Waiting<Entry, Result>[]
  resolve(result: Result): void
  reject(error: unknown): void
}

/**
 * Makes a function that sends one entry, together with those that arrive in the same turn of the event loop or while
 * `maxInFlight` batches are under way.
 */
export function createBatch<Entry, Result>(
  options: BatchOptions<Entry, Result>,
): (entry: Entry) => Promise<Result> {
  const { send, keyOf, merge, sizeOf, timeoutMs } = options
  const { maxEntries = 200, maxBytes = 1_000_000, maxInFlight = 2 } = options
  let queue: Waiting<Entry, Result>[] = []
  let inFlight = 0
  let isScheduled = false

  function schedule(): void {
    if (isScheduled || queue.length === 0 || inFlight >= maxInFlight) return
    isScheduled = true
    afterThisTurn(() => {
      isScheduled = false
      dispatch()
    })
  }

  function dispatch(): void {
    while (inFlight < maxInFlight) {
      const batch = nextBatch()
      if (batch.length === 0) return
      inFlight += 1
      deliver(batch).finally(() => {
        inFlight -= 1
        dispatch()
      })
    }
  }

  /** Takes from the queue, in order of arrival, what fits into one batch. */
  function nextBatch(): Waiting<Entry, Result>[] {
    const nowMs = performance.now()
    const batch = new Map<string, Waiting<Entry, Result>>()
    const left: Waiting<Entry, Result>[] = []
    let bytes = 0
    for (const waiting of queue) {
      if (nowMs >= waiting.deadlineMs) {
        waiting.reject(
          storeUnavailable(`The store was busy for ${timeoutMs} ms; the call was not sent.`),
        )
        continue
      }
      const first = batch.get(waiting.key)
      if (first !== undefined) {
        if (merge === undefined) left.push(waiting)
        else first.later.push(waiting)
      } else if (
        batch.size < maxEntries &&
        (batch.size === 0 || bytes + waiting.size <= maxBytes)
      ) {
        batch.set(waiting.key, waiting)
        bytes += waiting.size
      } else {
        left.push(waiting)
      }
    }
    queue = left
    // Everybody locks in this order, so that no two batches wait for each other.
    return [...batch.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  async function deliver(batch: readonly Waiting<Entry, Result>[]): Promise<void> {
    // A client that waits for ever must not keep the place of those that come after.
    const sent = await withDeadline(() => send(batch.map(({ entry }) => entry)), timeoutMs)
    if (!sent.ok) {
      const error = sent.error === timedOut ? unanswered() : sent.error
      if (batch.length === 1 || hasCode(error, 'ERR_STORE_UNAVAILABLE')) {
        for (const waiting of batch) fail(waiting, error)
        return
      }
      const half = batch.length >> 1
      await deliver(batch.slice(0, half))
      await deliver(batch.slice(half))
      return
    }
    for (const [index, waiting] of batch.entries()) {
      const result = sent.value[index]
      if (result === undefined)
        fail(waiting, storeUnavailable('The store did not answer every entry of a batch.'))
      else answer(waiting, result)
    }
  }

  function answer(waiting: Waiting<Entry, Result>, result: Result): void {
    waiting.resolve(result)
    for (const later of waiting.later) {
      const merged = merge?.(result, later.entry, waiting.entry)
      if (merged === undefined) queue.push({ ...later, later: [] })
      else later.resolve(merged)
    }
    schedule()
  }

  function unanswered(): unknown {
    return storeUnavailable(`The store did not answer within ${timeoutMs} ms.`)
  }

  // What became of the first is unknown, so nothing can be said about the later ones either.
  function fail(waiting: Waiting<Entry, Result>, error: unknown): void {
    waiting.reject(error)
    for (const later of waiting.later) later.reject(error)
  }

  return (entry) =>
    new Promise((resolve, reject) => {
      queue.push({
        entry,
        key: keyOf(entry),
        size: sizeOf?.(entry) ?? 0,
        deadlineMs: performance.now() + timeoutMs,
        later: [],
        resolve,
        reject,
      })
      schedule()
    })
}

// Requests of one poll of the event loop are separate turns of the microtask queue; an immediate comes after all.
const afterThisTurn: (callback: () => void) => void =
  typeof setImmediate === 'function'
    ? (callback) => void setImmediate(callback)
    : (callback) => void setTimeout(callback, 0)
