/** The policy of an inbox: options, their defaults and checks. */
import { errorHook } from './error-log.ts'
import { optionError, rejectUnknownOptions } from './errors.ts'
import { type Observer, quietObserver } from './observer.ts'
import { countOption, durationOption, functionOption, retentionOption } from './options.ts'
import type { BackoffOptions } from './retry.ts'
import { createSeal, type EncryptionOptions, type Seal } from './seal.ts'
import type { Store } from './store.ts'

const second = 1000
const day = 86_400 * second

/** Completed ids are kept at least this long, whatever the provider's own window is. */
export const shortestCompletedMs: number = 30 * day

/** When a delivery is run again. */
export interface RetryOptions {
  /**
   * Runs before the delivery is `dead`. Inline there is no limit unless this is set: the sender's schedule is the
   * limit. @default 8 in a worker
   */
  readonly maxAttempts?: number
  /** Workers: the longest wait after the first failure; it doubles with every further one. @default 1000 */
  readonly minMs?: number
  /** Workers: no wait is longer. @default 3600000 (an hour) */
  readonly maxMs?: number
  /** Workers: where in the wait the next attempt falls, 0 to 1 (full jitter). @default Math.random */
  readonly random?: () => number
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
  /** The stored bytes of a completed delivery. @default dropped at completion */
  readonly payloadMs?: number
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
  /** Hears of store errors, with their message and cause. @default their kind and place on the console */
  readonly onError?: (error: unknown) => void
  /** Seals the bytes and headers that are stored for workers. Needed where they are stored and where they are run. */
  readonly encryption?: EncryptionOptions
}

const storeMethods = [
  'claim',
  'renew',
  'complete',
  'fail',
  'release',
  'abandon',
  'take',
  'latest',
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

/** The checked policy: every default filled in. */
export interface Policy {
  readonly store: Store
  readonly observer: Observer
  readonly onError: (error: unknown) => void
  readonly leaseMs: number
  readonly maxRunMs: number
  readonly storeTimeoutMs: number
  readonly maxAttempts: number | undefined
  readonly backoff: BackoffOptions
  readonly inlineBackoffMs: number | undefined
  readonly completedMs: number | undefined
  readonly deadMs: number
  readonly unfinishedMs: number
  readonly payloadMs: number | undefined
  readonly seal: Seal | undefined
}

/** Checks the options once. @throws WebhookInboxError `ERR_OPTION` */
export function readPolicy(where: string, options: InboxOptions): Policy {
  if (typeof options !== 'object' || options === null)
    throw optionError(`${where}: pass an object with a store: { store }.`)
  rejectUnknownOptions(where, options, ['store', 'onError', 'encryption', ...policyOptionNames])
  checkStore(where, options.store)
  functionOption(where, 'observer', options.observer)
  functionOption(where, 'onError', options.onError)
  const { retry = {}, retention = {} } = options
  rejectUnknownOptions(`${where}: "retry"`, retry, [
    'maxAttempts',
    'minMs',
    'maxMs',
    'random',
    'inlineBackoffMs',
  ])
  rejectUnknownOptions(`${where}: "retention"`, retention, [
    'completedMs',
    'deadMs',
    'unfinishedMs',
    'payloadMs',
  ])
  const { onError } = options
  return Object.freeze({
    store: options.store,
    observer: quietObserver(options.observer),
    onError: errorHook(onError),
    leaseMs: durationOption(where, 'leaseMs', options.leaseMs, 30 * second),
    maxRunMs: durationOption(where, 'maxRunMs', options.maxRunMs, 900 * second),
    storeTimeoutMs: durationOption(where, 'storeTimeoutMs', options.storeTimeoutMs, 2 * second),
    maxAttempts: countOption(where, 'retry.maxAttempts', retry.maxAttempts),
    backoff: backoffOption(where, retry),
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
    payloadMs:
      retention.payloadMs === undefined
        ? undefined
        : retentionOption(where, 'retention.payloadMs', retention.payloadMs, day),
    seal: options.encryption === undefined ? undefined : createSeal(where, options.encryption),
  })
}

/** The waits between the attempts of a worker. @throws WebhookInboxError `ERR_OPTION` */
export function backoffOption(
  where: string,
  retry: RetryOptions,
  fallback: BackoffOptions = { minMs: second, maxMs: 3600 * second },
): BackoffOptions {
  functionOption(where, 'retry.random', retry.random)
  const minMs = durationOption(where, 'retry.minMs', retry.minMs, fallback.minMs)
  const maxMs = durationOption(where, 'retry.maxMs', retry.maxMs, Math.max(minMs, fallback.maxMs))
  if (maxMs < minMs)
    throw optionError(`${where}: "retry.maxMs" (${maxMs}) is below "retry.minMs" (${minMs}).`)
  const random = retry.random ?? fallback.random
  return random === undefined ? { minMs, maxMs } : { minMs, maxMs, random }
}
