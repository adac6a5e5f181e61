import { randomToken } from './crypto/bytes.ts'
import type { DeliveryKey, DeliveryState } from './delivery.ts'
import { optionError, rejectUnknownOptions, WebhookInboxError } from './errors.ts'
import { readListQuery, readNumberCursor } from './list-query.ts'
import { limitOption, readClock } from './options.ts'
import type {
  AttemptRecord,
  ClaimEntry,
  ClaimResult,
  CompleteOptions,
  DeliveryRecord,
  FailOptions,
  Hold,
  ListPage,
  ListQuery,
  RenewResult,
  RetryResult,
  SettleResult,
  Store,
  StoredPayload,
  StoreStats,
  TakenDelivery,
  Watch,
} from './store.ts'

export interface MemoryStoreOptions {
  /** The store's clock, in epoch milliseconds. @default Date.now */
  readonly now?: () => number
}

interface Row {
  readonly key: DeliveryKey
  readonly createdAtMs: number
  /** Order of creation, for pages. */
  readonly sequence: number
  state: DeliveryState
  /** How the present token and fence have settled the record, if they have. */
  settledBy: 'complete' | 'fail' | 'release' | undefined
  token: string
  fence: number
  attempt: number
  fingerprint: string | undefined
  event: string | undefined
  action: string | undefined
  code: string | undefined
  /** End of the lease (`processing`) or the next attempt time (`failed`, `pending`). */
  dueAtMs: number
  updatedAtMs: number
  purgeAtMs: number | undefined
  unfinishedRetentionMs: number
  payload: StoredPayload | undefined
  payloadUntilMs: number | undefined
  result: Uint8Array | undefined
  /** The line it waits in, and its place there. */
  order: string | undefined
  place: number
  /** The last attempts that did not complete. */
  attempts: AttemptRecord[]
}

const attemptsKept = 10

/**
 * The reference implementation of the store contract: readers start here. It lives in one process and is lost
 * with it, so it is for tests, trials and single-process tools.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  rejectUnknownOptions('memoryStore', options, ['now'])
  if (options.now !== undefined && typeof options.now !== 'function') {
    throw optionError('memoryStore: "now" must be a function that returns epoch milliseconds.')
  }
  const readNow = options.now ?? Date.now
  const now = (): number => readClock('memoryStore', readNow)
  const rows = new Map<string, Row>()
  // Of each line, what is not completed.
  const lines = new Map<string, Set<Row>>()
  const newest = new Map<string, { occurredAtMs: number; untilMs: number }>()
  const watchers = new Set<() => void>()
  let lastPlace = 0
  let lastFence = 0
  let lastSequence = 0

  // Also above the clock, so that a fence grows across a restart in which everything else was lost.
  function nextFence(previous: number): number {
    lastFence = Math.max(lastFence + 1, previous + 1, now() * 1000)
    return lastFence
  }

  function held(hold: Hold): Row | undefined {
    const row = rows.get(idOf(hold.key))
    return row !== undefined && row.token === hold.token && row.fence === hold.fence
      ? row
      : undefined
  }

  function change(row: Row, state: DeliveryState): void {
    row.state = state
    row.updatedAtMs = now()
    // Work whose bytes are stored was answered 2xx: it is never purged before it is settled.
    row.purgeAtMs =
      row.payload === undefined ? row.updatedAtMs + row.unfinishedRetentionMs : undefined
  }

  function bury(row: Row, code: string, retentionMs: number): void {
    change(row, 'dead')
    row.code = code
    row.purgeAtMs = now() + retentionMs
  }

  function exhaust(row: Row, retentionMs: number): void {
    noteLostOwner(row)
    bury(row, 'attempts_exhausted', retentionMs)
  }

  function note(row: Row, attempt: AttemptRecord): void {
    row.attempts = [...row.attempts, attempt].slice(-attemptsKept)
  }

  // Whoever comes for a claimed record whose lease has ended finds that its owner was lost.
  function noteLostOwner(row: Row): void {
    if (row.state !== 'processing') return
    note(row, { attempt: row.attempt, endedAt: new Date(row.dueAtMs), code: 'lease_expired' })
  }

  function enterLine(row: Row, order: string | undefined): void {
    if (order === undefined || row.payload === undefined) return
    lastPlace += 1
    row.order = order
    row.place = lastPlace
    const line = lines.get(order) ?? new Set()
    lines.set(order, line.add(row))
  }

  function leaveLine(row: Row): void {
    if (row.order === undefined) return
    const line = lines.get(row.order)
    line?.delete(row)
    if (line?.size === 0) lines.delete(row.order)
  }

  function isItsTurn(row: Row, deadBlocksOrder: boolean): boolean {
    if (row.order === undefined) return true
    for (const other of lines.get(row.order) ?? []) {
      if (other === row) continue
      if (isHeldLive(other)) return false
      if (other.place < row.place && (other.state !== 'dead' || deadBlocksOrder)) return false
    }
    return true
  }

  function announce(): void {
    for (const onWork of watchers) onWork()
  }

  function remove(id: string, row: Row): void {
    rows.delete(id)
    leaveLine(row)
  }

  function grant(row: Row, token: string, leaseMs: number): void {
    noteLostOwner(row)
    row.token = token
    row.settledBy = undefined
    row.fence = nextFence(row.fence)
    row.attempt += 1
    row.dueAtMs = now() + leaseMs
    change(row, 'processing')
  }

  function claimOne(entry: ClaimEntry): ClaimResult {
    const id = idOf(entry.key)
    let row = rows.get(id)
    // Expiry is judged here; purging is only housekeeping.
    if (row?.purgeAtMs !== undefined && row.purgeAtMs <= now() && !isHeldLive(row)) {
      remove(id, row)
      row = undefined
    }
    if (row === undefined) {
      row = createRow(entry)
      rows.set(id, row)
      if (entry.mode === 'queued') {
        change(row, 'pending')
        enterLine(row, entry.order)
        announce()
        return { status: 'pending', fresh: true, fingerprintMatches: true }
      }
      grant(row, entry.token, entry.leaseMs)
      return claimed(row, entry.leaseMs, true)
    }

    const fingerprintMatches =
      row.fingerprint === undefined ||
      entry.fingerprint === undefined ||
      row.fingerprint === entry.fingerprint
    if (row.state === 'completed') {
      const at = new Date(row.updatedAtMs)
      return row.result === undefined
        ? { status: 'completed', at, fingerprintMatches }
        : { status: 'completed', at, result: row.result.slice(), fingerprintMatches }
    }
    row.fingerprint ??= entry.fingerprint
    if (row.state === 'processing' && row.token === entry.token) {
      row.dueAtMs = now() + entry.leaseMs
      return claimed(row, entry.leaseMs, fingerprintMatches)
    }
    if (row.state === 'dead') {
      if (entry.redeliverDead !== true) return { status: 'dead', fingerprintMatches }
      row.attempt = 0
      row.dueAtMs = now()
      change(row, 'failed')
    }

    if (entry.mode === 'queued') {
      // A copy brings the bytes that an inline claim did not keep: from here a worker can finish the work.
      if (row.payload === undefined && entry.payload !== undefined) {
        row.payload = copyOf(entry.payload)
        row.purgeAtMs = undefined
        enterLine(row, entry.order)
      }
      announce()
    }
    if (entry.mode === 'queued' || row.order !== undefined) {
      if (!isHeldLive(row)) return { status: 'pending', fresh: false, fingerprintMatches }
    }

    if (isHeldLive(row))
      return { status: 'processing', leaseMs: row.dueAtMs - now(), fingerprintMatches }
    const spent = entry.maxAttempts !== undefined && row.attempt >= entry.maxAttempts
    if (spent && row.state !== 'pending') {
      exhaust(row, entry.deadRetentionMs ?? entry.unfinishedRetentionMs)
      return { status: 'dead', fingerprintMatches }
    }
    if (row.state === 'failed' && entry.respectBackoff === true && row.dueAtMs > now()) {
      return { status: 'waiting', retryInMs: row.dueAtMs - now(), fingerprintMatches }
    }
    grant(row, entry.token, entry.leaseMs)
    return claimed(row, entry.leaseMs, fingerprintMatches)
  }

  function createRow(entry: ClaimEntry): Row {
    lastSequence += 1
    return {
      key: entry.key,
      createdAtMs: now(),
      sequence: lastSequence,
      state: 'pending',
      settledBy: undefined,
      token: '',
      fence: 0,
      attempt: 0,
      fingerprint: entry.fingerprint,
      event: entry.event,
      action: entry.action,
      code: undefined,
      dueAtMs: now(),
      updatedAtMs: now(),
      purgeAtMs: undefined,
      unfinishedRetentionMs: entry.unfinishedRetentionMs,
      payload: copyOf(entry.payload),
      payloadUntilMs: undefined,
      result: undefined,
      order: undefined,
      place: 0,
      attempts: [],
    }
  }

  function isHeldLive(row: Row): boolean {
    return row.state === 'processing' && row.dueAtMs > now()
  }

  function isWorkable(row: Row): boolean {
    if (row.payload === undefined || row.dueAtMs > now()) return false
    return row.state === 'pending' || row.state === 'failed' || row.state === 'processing'
  }

  function refuseTransaction(tx: unknown): void {
    if (tx === undefined) return
    throw new WebhookInboxError(
      'ERR_TRANSACTION',
      'memoryStore has no transactions. Use a store on your database for completeIn(), for instance sqliteStore().',
    )
  }

  return {
    name: 'memory',

    async claim(entries) {
      return entries.map(claimOne)
    },

    async renew(hold, leaseMs): Promise<RenewResult> {
      const row = held(hold)
      if (row?.state !== 'processing') return 'lost'
      row.dueAtMs = now() + leaseMs
      if (row.payload === undefined) row.purgeAtMs = now() + row.unfinishedRetentionMs
      return 'ok'
    },

    async complete(hold, options: CompleteOptions, tx): Promise<SettleResult> {
      refuseTransaction(tx)
      const row = held(hold)
      if (row?.settledBy === 'complete') return 'already'
      if (row?.state !== 'processing') return 'lost'
      change(row, 'completed')
      row.settledBy = 'complete'
      row.code = undefined
      row.result = options.result?.slice()
      if (options.payloadRetentionMs === undefined) row.payload = undefined
      else row.payloadUntilMs = now() + options.payloadRetentionMs
      row.purgeAtMs = now() + options.retentionMs
      leaveLine(row)
      return 'ok'
    },

    async fail(hold, options: FailOptions, tx): Promise<SettleResult> {
      refuseTransaction(tx)
      const row = held(hold)
      if (row?.settledBy === 'fail') return 'already'
      if (row?.state !== 'processing') return 'lost'
      row.settledBy = 'fail'
      row.payload ??= copyOf(options.payload)
      const { code, durationMs } = options
      const ended = { attempt: row.attempt, endedAt: new Date(now()), code }
      note(row, durationMs === undefined ? ended : { ...ended, durationMs })
      if (options.dead === true) {
        bury(row, options.code, options.retentionMs)
        return 'ok'
      }
      change(row, 'failed')
      row.code = options.code
      row.dueAtMs = now() + options.retryInMs
      if (row.payload === undefined) row.purgeAtMs = now() + options.retentionMs
      return 'ok'
    },

    async release(hold): Promise<SettleResult> {
      const row = held(hold)
      if (row?.settledBy === 'release') return 'already'
      if (row?.state !== 'processing') return 'lost'
      row.settledBy = 'release'
      row.attempt -= 1
      row.dueAtMs = now()
      change(row, row.payload === undefined ? 'failed' : 'pending')
      announce()
      return 'ok'
    },

    async abandon(key, token) {
      const row = rows.get(idOf(key))
      if (row?.state === 'processing' && row.token === token)
        await this.release({ key, token, fence: row.fence })
    },

    async take({ limit, leaseMs, maxAttempts, deadRetentionMs, deadBlocksOrder = false }) {
      limitOption('take', limit, 1000)
      const taken: TakenDelivery[] = []
      // What is buried makes room in its line: then once more.
      for (let again = true; again; ) {
        again = false
        const due = [...rows.values()].filter(isWorkable).sort((a, b) => a.dueAtMs - b.dueAtMs)
        for (const row of due) {
          if (taken.length >= limit) break
          if (row.payload === undefined || !isItsTurn(row, deadBlocksOrder)) continue
          if (maxAttempts !== undefined && row.attempt >= maxAttempts && row.state !== 'pending') {
            exhaust(row, deadRetentionMs)
            again ||= row.order !== undefined
            continue
          }
          grant(row, randomToken(), leaseMs)
          taken.push({
            hold: { key: row.key, token: row.token, fence: row.fence },
            attempt: row.attempt,
            lostOwners: lostOwnersOf(row),
            leaseMs,
            ...(row.event === undefined ? {} : { event: row.event }),
            ...(row.action === undefined ? {} : { action: row.action }),
            receivedAt: new Date(row.createdAtMs),
            payload: copyOf(row.payload),
          })
        }
      }
      return taken
    },

    async get(key) {
      const row = rows.get(idOf(key))
      return row === undefined ? undefined : { ...toRecord(row, now()), attempts: row.attempts }
    },

    async list(query: ListQuery = {}): Promise<ListPage> {
      const { limit, cursor } = readListQuery(query)
      const before = readNumberCursor(cursor) ?? Number.POSITIVE_INFINITY
      const found = [...rows.values()]
        .filter((row) => row.sequence < before && matches(row, query))
        .sort((a, b) => b.sequence - a.sequence)
      const page = found.slice(0, limit)
      const last = page.at(-1)
      const records = page.map((row) => toRecord(row, now()))
      return found.length > limit && last !== undefined
        ? { records, next: String(last.sequence) }
        : { records }
    },

    async stats(): Promise<StoreStats> {
      const states = { pending: 0, processing: 0, completed: 0, failed: 0, dead: 0 }
      let abandoned = 0
      let oldestMs: number | undefined
      for (const row of rows.values()) {
        states[row.state] += 1
        if (row.state === 'processing' && !isHeldLive(row)) abandoned += 1
        if (row.state === 'completed' || row.state === 'dead') continue
        oldestMs = Math.min(oldestMs ?? row.createdAtMs, row.createdAtMs)
      }
      return oldestMs === undefined
        ? { states, abandoned }
        : { states, abandoned, oldestUnfinishedMs: now() - oldestMs }
    },

    async retry(key): Promise<RetryResult> {
      const row = rows.get(idOf(key))
      if (row === undefined) return 'not_found'
      if (row.state !== 'dead' && row.state !== 'failed') return 'not_retryable'
      row.attempt = 0
      row.dueAtMs = now()
      change(row, row.payload === undefined ? 'failed' : 'pending')
      announce()
      return row.payload === undefined ? 'needs_redelivery' : 'pending'
    },

    async purge(limit) {
      limitOption('purge', limit, 1_000_000)
      let purged = 0
      for (const [id, row] of rows) {
        if (purged >= limit) break
        if (row.payloadUntilMs !== undefined && row.payloadUntilMs <= now()) {
          row.payload = undefined
          row.payloadUntilMs = undefined
        }
        if (row.purgeAtMs === undefined || row.purgeAtMs > now() || isHeldLive(row)) continue
        remove(id, row)
        purged += 1
      }
      for (const [entity, { untilMs }] of newest) if (untilMs <= now()) newest.delete(entity)
      return purged
    },

    async latest({ entity, occurredAtMs, retentionMs }, tx) {
      refuseTransaction(tx)
      const known = newest.get(entity)
      if (known !== undefined && known.untilMs > now() && known.occurredAtMs > occurredAtMs)
        return false
      newest.set(entity, { occurredAtMs, untilMs: now() + retentionMs })
      return true
    },

    async watch(onWork): Promise<Watch> {
      // One function may be watching twice: each watch is its own.
      const watcher = (): void => onWork()
      watchers.add(watcher)
      return {
        reach: 'all',
        async close() {
          watchers.delete(watcher)
        },
      }
    },

    async setup() {},
    async close() {},
  }
}

// What a caller does to its buffer afterwards is no change of the record.
function copyOf<T extends StoredPayload | undefined>(payload: T): T
function copyOf(payload: StoredPayload | undefined): StoredPayload | undefined {
  if (payload === undefined) return undefined
  return { body: payload.body.slice(), headers: { ...payload.headers } }
}

// Length-prefixed, so that no choice of parts can spell another key.
function idOf({ provider, endpoint, deliveryId }: DeliveryKey): string {
  return `${provider.length}:${provider}${endpoint.length}:${endpoint}${deliveryId}`
}

function claimed(row: Row, leaseMs: number, fingerprintMatches: boolean): ClaimResult {
  return { status: 'claimed', fence: row.fence, attempt: row.attempt, leaseMs, fingerprintMatches }
}

function matches(row: Row, query: ListQuery): boolean {
  return (
    (query.state === undefined || row.state === query.state) &&
    (query.provider === undefined || row.key.provider === query.provider) &&
    (query.event === undefined || row.event === query.event) &&
    (query.since === undefined || row.createdAtMs >= query.since.getTime()) &&
    (query.until === undefined || row.createdAtMs < query.until.getTime())
  )
}

function lostOwnersOf({ attempts }: Row): number {
  const kept = attempts.findLastIndex(({ code }) => code !== 'lease_expired')
  return attempts.length - 1 - kept
}

function toRecord(row: Row, nowMs: number): DeliveryRecord {
  const hasDue = row.state === 'processing' || row.state === 'failed' || row.state === 'pending'
  return {
    key: row.key,
    state: row.state,
    abandoned: row.state === 'processing' && row.dueAtMs <= nowMs,
    ...(row.event === undefined ? {} : { event: row.event }),
    ...(row.action === undefined ? {} : { action: row.action }),
    attempt: row.attempt,
    fence: row.fence,
    ...(row.fingerprint === undefined ? {} : { fingerprint: row.fingerprint }),
    ...(row.code === undefined ? {} : { code: row.code }),
    hasPayload: row.payload !== undefined,
    createdAt: new Date(row.createdAtMs),
    updatedAt: new Date(row.updatedAtMs),
    ...(hasDue ? { dueAt: new Date(row.dueAtMs) } : {}),
    ...(row.purgeAtMs === undefined ? {} : { purgeAt: new Date(row.purgeAtMs) }),
  }
}
