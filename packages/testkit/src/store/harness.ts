import type {
  ClaimEntry,
  ClaimResult,
  DeliveryKey,
  DeliveryRecord,
  Hold,
  Store,
  StoredPayload,
} from '@webhook-inbox/core'
import type { Expect } from '../runner.ts'

/**
 * What a store can show beyond the contract. A guarantee that needs one is registered only when the harness
 * declares it, and fails when its hook is then missing.
 *
 * - `second`: several instances on the same data
 * - `transactions`: completion inside the caller's transaction
 * - `writes`: a counter of writes
 * - `watch`: the store tells of new work
 */
export type StoreFeature = 'second' | 'transactions' | 'writes' | 'watch'

/** How the suite gets a store. */
export interface StoreHarness {
  /** Named in the report, for instance `sqlite`. */
  readonly name: string
  readonly features?: readonly StoreFeature[]
  /**
   * The unit of time in the suite: a lease is ten of them. Stores that take `now` leave it; a store with a clock
   * of its own, where {@link StoreFixture.advance} really waits, makes it as short as ten ticks allow for a few
   * round trips, for instance 30.
   * @default 1000
   */
  readonly tickMs?: number
  /** Opens an empty store, set up and ready. Called once for each guarantee. */
  create(options: {
    /** The suite's clock in epoch milliseconds: hand it to a store that takes one. */
    readonly now: () => number
  }): Promise<StoreFixture>
}

/** A store for one guarantee. */
export interface StoreFixture {
  readonly store: Store
  /** Feature `second`: one more instance on the same data, as another process would open it. Closed by the harness. */
  second?(): Promise<Store>
  /** For stores with a clock of their own: moves that clock, or waits. Without it the clock of `create` is moved. */
  advance?(ms: number): Promise<void>
  /**
   * Feature `transactions`: runs `work` in a transaction of the caller's client; commits when it returns, rolls
   * back and rethrows when it throws.
   */
  transaction?(work: (tx: unknown) => Promise<void>): Promise<void>
  /** Feature `writes`: how many rows, keys or pages were written since the store was made; any growing measure. */
  writes?(): Promise<number>
  /** Closes and removes everything. */
  close(): Promise<void>
}

/** What one guarantee works with. */
export interface StoreTest {
  readonly store: Store
  readonly expect: Expect
  /** Milliseconds of one tick. */
  readonly tickMs: number
  /** Moves the store's time forward by ticks. */
  advance(ticks: number): Promise<void>
  second(): Promise<Store>
  transaction(work: (tx: unknown) => Promise<void>): Promise<void>
  writes(): Promise<number>
  /** A claim entry: a new token, ten ticks of lease, inline. */
  entry(overrides?: Partial<ClaimEntry>): ClaimEntry
  /** Claims one entry. */
  claim(overrides?: Partial<ClaimEntry>): Promise<ClaimResult>
  /** Claims one entry that must be granted. */
  grant(overrides?: Partial<ClaimEntry>): Promise<Grant>
  /** Stores a queued delivery. */
  enqueue(overrides?: Partial<ClaimEntry>): Promise<ClaimResult>
  /** Takes with ten ticks of lease. */
  take(options?: {
    readonly limit?: number
    readonly maxAttempts?: number
    readonly deadBlocksOrder?: boolean
  }): ReturnType<Store['take']>
  /** The record of a key, which must exist. */
  record(key?: DeliveryKey): Promise<DeliveryRecord>
}

/** A granted claim. */
export interface Grant {
  readonly hold: Hold
  readonly fence: number
  readonly attempt: number
  readonly leaseMs: number
}

/** A guarantee of a store as code. */
export type StoreGuarantee = (test: StoreTest) => Promise<void>

export function keyOf(deliveryId = 'd-1', endpoint = '', provider = 'github'): DeliveryKey {
  return { provider, endpoint, deliveryId }
}

export function payloadOf(text: string): StoredPayload {
  return { body: new TextEncoder().encode(text), headers: { 'content-type': 'application/json' } }
}

/** Bytes as text, for comparison. */
export function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** A list of anything as counts, for comparison. */
export function tally(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1
  return counts
}

/** A claim's result, which must be a grant. */
export function grantOf(entry: ClaimEntry, result: ClaimResult | undefined): Grant {
  if (result?.status !== 'claimed')
    throw new Error(`The claim had to be granted; the store answered "${result?.status}".`)
  const { fence, attempt, leaseMs } = result
  return { hold: { key: entry.key, token: entry.token, fence }, fence, attempt, leaseMs }
}

/** A value that must be there. */
export function present<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Error(`${what} is missing.`)
  return value
}

/** Waits for a call that must reject; answers the error's code. */
export async function rejection(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call()
  } catch (error) {
    return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  }
  throw new Error('The call had to reject.')
}

/** Opens a store and runs one guarantee on it. */
export async function runStoreGuarantee(
  harness: StoreHarness,
  expect: Expect,
  guarantee: StoreGuarantee,
): Promise<void> {
  const tickMs = harness.tickMs ?? 1000
  // Starts at the real time, so that a store may compare it with its own.
  let nowMs = Date.now()
  const fixture = await harness.create({ now: () => nowMs })
  const { store } = fixture
  try {
    await guarantee(storeTest())
  } finally {
    await fixture.close()
  }

  function storeTest(): StoreTest {
    let tokens = 0
    const entry = (overrides: Partial<ClaimEntry> = {}): ClaimEntry => {
      tokens += 1
      return {
        key: keyOf(),
        token: `token-${tokens}`,
        leaseMs: 10 * tickMs,
        mode: 'inline',
        unfinishedRetentionMs: 1000 * tickMs,
        ...overrides,
      }
    }
    const claim = async (overrides?: Partial<ClaimEntry>): Promise<ClaimResult> => {
      const [result] = await store.claim([entry(overrides)])
      return present(result, 'The result of the claim')
    }
    return {
      store,
      expect,
      tickMs,
      entry,
      claim,
      async advance(ticks) {
        const ms = ticks * tickMs
        if (fixture.advance === undefined) nowMs += ms
        else await fixture.advance(ms)
      },
      second: () => present(fixture.second, 'The hook "second"')(),
      transaction: (work) => present(fixture.transaction, 'The hook "transaction"')(work),
      writes: () => present(fixture.writes, 'The hook "writes"')(),
      async grant(overrides) {
        const asked = entry(overrides)
        const [result] = await store.claim([asked])
        return grantOf(asked, result)
      },
      enqueue: (overrides) => claim({ mode: 'queued', payload: payloadOf('{}'), ...overrides }),
      take: ({ limit = 100, maxAttempts, deadBlocksOrder = false } = {}) =>
        store.take({
          limit,
          deadBlocksOrder,
          leaseMs: 10 * tickMs,
          deadRetentionMs: 1000 * tickMs,
          ...(maxAttempts === undefined ? {} : { maxAttempts }),
        }),
      async record(key = keyOf()) {
        return present(await store.get(key), 'The record')
      },
    }
  }
}
