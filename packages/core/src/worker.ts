/** Takes stored deliveries, runs them and settles them. */
import { unref } from './deadline.ts'
import { errorHook } from './error-log.ts'
import { optionError, rejectUnknownOptions } from './errors.ts'
import { type HandlerEntry, readRoutes, type WebhookNamed, type WorkerHandler } from './handlers.ts'
import type { Inbox, TakenClaim } from './inbox.ts'
import type { ItemClaims } from './items.ts'
import {
  booleanOption,
  countOption,
  durationOption,
  functionOption,
  limitOption,
} from './options.ts'
import { getProvider } from './providers/catalogue.ts'
import { checkEntry } from './providers/check.ts'
import type { Provider } from './providers/provider.ts'
import { backoffMs } from './retry.ts'
import type { Watch } from './store.ts'
import { runTaken } from './worker-run.ts'

interface SharedWorkerOptions {
  readonly inbox: Inbox
  /** How many deliveries run at the same time in this process. @default 10 */
  readonly concurrency?: number
  /** Entries of your own, as the endpoints have them; those of the catalogue are known. */
  readonly providers?: readonly Provider[]
  /**
   * The longest time without asking the store for work. Hints of the store, and what this worker itself has put off,
   * only shorten it. @default 5000 where the store tells of other processes' work, else 1000
   */
  readonly pollMs?: number
  /** Removes records whose retention is over, in batches of `limit` (1000), every `everyMs` (60000). `false`: never. */
  readonly purge?: false | { readonly everyMs?: number; readonly limit?: number }
  /** With `orderKey`: a dead delivery stops its line until an operator has retried it, or it was purged. @default false */
  readonly deadBlocksOrder?: boolean
  /** Hears what handlers and the store throw. @default the inbox's */
  readonly onError?: (error: unknown) => void
}

/** One handler for everything, or handlers by name. */
export type WorkerOptions<Names extends string = string> = SharedWorkerOptions &
  (
    | { readonly handler: WorkerHandler; readonly handlers?: undefined }
    | {
        /**
         * By `provider.event.action`, `provider.event`, `event.action`, `event`, `provider.*` or `*`; the first of
         * these that is there runs. A delivery that none fits becomes dead (`no_handler`): nothing that was
         * acknowledged is dropped in silence. `'*': () => {}` drops the rest by intent.
         */
        readonly handlers: {
          readonly [Name in Names]:
            | WorkerHandler<WebhookNamed<Name>>
            | HandlerEntry<WebhookNamed<Name>>
        }
        readonly handler?: undefined
      }
  )

export interface WorkerHealth {
  readonly state: 'new' | 'started' | 'stopping' | 'stopped'
  /** Deliveries in hand. */
  readonly running: number
  /** When the store last answered a question for work. */
  readonly lastTakeAt?: Date
  /** How many such questions have failed since. */
  readonly failedTakes: number
}

export interface Worker {
  /** Begins to take work, until {@link stop}. Keeps the process alive. Idempotent. */
  start(): void
  /**
   * Runs until nothing is due any more and nothing runs. For tests, and for processes that are called now and then.
   * @throws WebhookInboxError `ERR_STORE_UNAVAILABLE` when the store cannot be asked
   */
  drain(): Promise<void>
  /**
   * Takes nothing more and waits for what runs. After `timeoutMs` (30000) its signals are aborted with the reason
   * `shutdown`; what has not ended a second later is given back without counting the attempt, and may run elsewhere
   * while it still runs here. Idempotent.
   * @returns `running`: handlers that had not ended
   */
  stop(options?: { readonly timeoutMs?: number }): Promise<{ readonly running: number }>
  health(): WorkerHealth
}

const graceMs = 1000
const longestPlanMs = 60_000
const watchAgainMs = 30_000
const longestTimerMs = 2_147_483_647
// What has outlived this many owners runs alone: a payload that kills its process must not take others with it.
const suspectAfter = 2

/**
 * Makes a worker: it takes pending, due and abandoned deliveries from the inbox's store, beside any number of others
 * in this process and elsewhere.
 * @throws WebhookInboxError `ERR_OPTION` when an option is missing, unknown or of the wrong kind
 */
export function createWorker<const Names extends string = string>(
  options: WorkerOptions<Names>,
): Worker {
  const settings = readWorkerOptions(options)
  const { inbox, concurrency, routes } = settings
  const isolateFrom = Math.min(suspectAfter, Math.max(1, routes.maxAttempts - 1))
  const jobs = new Map<TakenClaim, Promise<void>>()
  const itemsOf = new WeakMap<TakenClaim, ItemClaims>()
  // It waits until nothing else runs; from when it was taken to its end nothing more is taken.
  let suspect: TakenClaim | undefined
  const dueTimes = new Set<number>()
  const drains = new Set<{ resolve(): void; reject(error: unknown): void }>()
  let state: WorkerHealth['state'] = 'new'
  let looping: Promise<void> | undefined
  let stopping: Promise<{ readonly running: number }> | undefined
  let watch: Watch | undefined
  let watchTimer: ReturnType<typeof setTimeout> | undefined
  let purgeTimer: ReturnType<typeof setTimeout> | undefined
  let lastTakeAt: Date | undefined
  let failedTakes = 0
  let isAwake = false
  let awaken: (() => void) | undefined

  function wake(): void {
    isAwake = true
    awaken?.()
  }

  /** Waits until somebody wakes the loop, at most `ms`. */
  async function rest(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    await new Promise<void>((resolve) => {
      awaken = resolve
      if (isAwake) resolve()
      else timer = setTimeout(resolve, ms)
    })
    clearTimeout(timer)
    awaken = undefined
  }

  function isOpen(): boolean {
    return state === 'started' || (state === 'new' && drains.size > 0)
  }

  async function loop(): Promise<void> {
    while (isOpen()) {
      // Cleared before the store is asked: what comes while it answers is asked for once more.
      isAwake = false
      const free = concurrency - jobs.size
      if (free <= 0 || suspect !== undefined) {
        await rest(pollMs())
        continue
      }
      const found = await take(free)
      if (found === undefined) {
        await pause(backoffMs(failedTakes, { minMs: 500, maxMs: 30_000 }))
        continue
      }
      admit(found)
      if (found.length === 0 && jobs.size === 0 && !isAwake) endDrains()
      if (found.length < free && isOpen()) await rest(untilNextQuestion())
    }
    // In the same turn: whoever drains again is not to find a loop that has ended.
    looping = undefined
  }

  async function take(limit: number): Promise<readonly TakenClaim[] | undefined> {
    try {
      const found = await inbox.take({
        limit: Math.min(limit, 1000),
        maxAttempts: routes.maxAttempts,
        deadBlocksOrder: settings.deadBlocksOrder,
        minRetentionMs: (provider) => settings.providerOf(provider)?.retentionMs ?? 0,
      })
      lastTakeAt = new Date()
      failedTakes = 0
      return found
    } catch (error) {
      failedTakes += 1
      settings.onError(error)
      for (const drain of drains) drain.reject(error)
      drains.clear()
      return undefined
    }
  }

  // Longer with every failure, and no hint cuts it short: a store that is down is not hammered.
  async function pause(ms: number): Promise<void> {
    const until = performance.now() + ms
    while (isOpen() && performance.now() < until) {
      isAwake = false
      await rest(until - performance.now())
    }
  }

  function pollMs(): number {
    return settings.pollMs ?? (watch?.reach === 'all' ? 5000 : 1000)
  }

  function untilNextQuestion(): number {
    const nowMs = performance.now()
    let waitMs = pollMs()
    for (const dueMs of dueTimes) {
      if (dueMs <= nowMs) dueTimes.delete(dueMs)
      waitMs = Math.min(waitMs, Math.max(0, dueMs - nowMs))
    }
    return waitMs
  }

  function admit(found: readonly TakenClaim[]): void {
    if (!isOpen()) {
      for (const job of found) track(job, release(job))
      return
    }
    const isSuspect = ({ taken }: TakenClaim): boolean => taken.lostOwners >= isolateFrom
    for (const job of found) if (!isSuspect(job)) begin(job)
    // One at a time: those that only waited would lose an owner each when it kills this process.
    const [first, ...others] = found.filter(isSuspect)
    suspect = first
    for (const job of others) track(job, release(job))
    beginSuspect()
  }

  function beginSuspect(): void {
    if (suspect !== undefined && jobs.size === 0 && state !== 'stopping') begin(suspect)
  }

  function begin(job: TakenClaim): void {
    track(
      job,
      runTaken(job, {
        ...settings,
        onItems: (items) => void itemsOf.set(job, items),
      }).then((retryInMs) => {
        // A millisecond more: the store counts in whole ones. What is further away polling finds.
        if (retryInMs !== undefined && retryInMs < longestPlanMs)
          dueTimes.add(performance.now() + retryInMs + 1)
      }),
    )
  }

  function track(job: TakenClaim, work: Promise<void>): void {
    const ended = work.catch(settings.onError).finally(() => {
      jobs.delete(job)
      if (job === suspect) suspect = undefined
      beginSuspect()
      // What the store is answering now is from before this end.
      isAwake = true
      // Those that end together are replaced by one question.
      setTimeout(wake)
    })
    jobs.set(job, ended)
  }

  async function release(job: TakenClaim): Promise<void> {
    const { claim, ref } = job
    await itemsOf.get(job)?.claim.release()
    await claim.release()
    inbox.observer({ type: 'released', ...ref })
  }

  function endDrains(): void {
    for (const drain of drains) drain.resolve()
    drains.clear()
  }

  function ensureLoop(): void {
    looping ??= loop()
  }

  async function listen(): Promise<void> {
    try {
      const opened = await inbox.store.watch?.(wake)
      if (state === 'started') watch = opened
      else await opened?.close()
      // What came before the watch was open has been missed.
      wake()
    } catch (error) {
      // Polling goes on meanwhile; it does not need hints.
      inbox.observer({ type: 'store_unavailable', operation: 'watch' })
      settings.onError(error)
      if (state === 'started') watchTimer = unref(setTimeout(listen, watchAgainMs))
    }
  }

  function planPurge(): void {
    if (settings.purge === undefined || state !== 'started') return
    const { everyMs, limit } = settings.purge
    // Not all workers at the same moment.
    purgeTimer = unref(setTimeout(purge, everyMs * (0.5 + Math.random()), limit))
  }

  async function purge(limit: number): Promise<void> {
    try {
      while (state === 'started' && (await inbox.purge(limit)) >= limit);
    } catch (error) {
      inbox.observer({ type: 'store_unavailable', operation: 'purge' })
      settings.onError(error)
    }
    planPurge()
  }

  async function stop(timeoutMs: number): Promise<{ readonly running: number }> {
    state = 'stopping'
    clearTimeout(purgeTimer)
    clearTimeout(watchTimer)
    wake()
    await looping
    for (const drain of drains) drain.reject(stopped())
    drains.clear()
    await watch?.close().catch(settings.onError)
    if (suspect !== undefined && !jobs.has(suspect)) track(suspect, release(suspect))
    await endedWithin(timeoutMs)
    for (const { claim } of jobs.keys()) claim.abort('shutdown')
    await endedWithin(graceMs)
    const left = [...jobs.keys()]
    await Promise.all(left.map(release))
    state = 'stopped'
    return { running: left.length }
  }

  // Not unref'd: a process that stops its worker means to wait for it.
  async function endedWithin(ms: number): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const time = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, Math.min(ms, longestTimerMs))
    })
    if (jobs.size > 0) await Promise.race([Promise.all(jobs.values()), time])
    clearTimeout(timer)
  }

  return Object.freeze({
    start() {
      if (state === 'stopping' || state === 'stopped') throw stopped()
      if (state === 'started') return
      state = 'started'
      listen()
      planPurge()
      ensureLoop()
    },

    drain() {
      if (state === 'stopping' || state === 'stopped') return Promise.reject(stopped())
      return new Promise<void>((resolve, reject) => {
        drains.add({ resolve, reject })
        wake()
        ensureLoop()
      })
    },

    async stop({ timeoutMs = 30_000 } = {}) {
      if (typeof timeoutMs !== 'number' || !(timeoutMs >= 0))
        throw optionError('stop: "timeoutMs" must be a number of milliseconds from 0.')
      stopping ??= stop(timeoutMs)
      return stopping
    },

    health: () => ({
      state,
      running: jobs.size + (suspect === undefined || jobs.has(suspect) ? 0 : 1),
      failedTakes,
      ...(lastTakeAt === undefined ? {} : { lastTakeAt }),
    }),
  } satisfies Worker)
}

function stopped(): Error {
  return optionError('createWorker: a worker that was stopped stays so. Make another one.')
}

const optionNames = [
  'inbox',
  'handler',
  'handlers',
  'concurrency',
  'providers',
  'pollMs',
  'purge',
  'deadBlocksOrder',
  'onError',
]

function readWorkerOptions(
  options: SharedWorkerOptions & { readonly handler?: unknown; readonly handlers?: unknown },
) {
  const where = 'createWorker'
  rejectUnknownOptions(where, options, optionNames)
  const { inbox, providers = [], purge, onError } = options
  if (typeof inbox !== 'object' || inbox === null || typeof inbox.open !== 'function') {
    throw optionError(
      `${where}: "inbox" must be what createInbox({ store }) returns, on the store that the endpoints use.`,
    )
  }
  functionOption(where, 'onError', onError)
  if (!Array.isArray(providers))
    throw optionError(`${where}: "providers" must be a list of provider entries.`)
  for (const provider of providers) checkEntry(provider)
  const byName = new Map(providers.map((provider) => [provider.name, provider]))
  return {
    inbox,
    routes: readRoutes(where, inbox.policy, options),
    concurrency: countOption(where, 'concurrency', options.concurrency) ?? 10,
    providerOf: (name: string) => byName.get(name) ?? getProvider(name),
    pollMs:
      options.pollMs === undefined
        ? undefined
        : durationOption(where, 'pollMs', options.pollMs, 1000),
    purge: purge === false ? undefined : readPurge(where, purge),
    deadBlocksOrder: booleanOption(where, 'deadBlocksOrder', options.deadBlocksOrder),
    onError: onError === undefined ? inbox.policy.onError : errorHook(onError),
  }
}

function readPurge(where: string, purge: Exclude<WorkerOptions['purge'], false> = {}) {
  rejectUnknownOptions(`${where}: "purge"`, purge, ['everyMs', 'limit'])
  const { everyMs, limit = 1000 } = purge
  return {
    everyMs: durationOption(where, 'purge.everyMs', everyMs, 60_000),
    limit: limitOption(`${where}: "purge"`, limit, 1_000_000),
  }
}
