import { hasCode, storeUnavailable, type WebhookInboxError } from '@webhook-inbox/core'

const firstDelayMs = 2
const longestDelayMs = 20

/** Says that the handed-in connection is inside a transaction of its owner. */
export const inForeignTransaction: unique symbol = Symbol('inForeignTransaction')

/** Runs synchronous work on a database that others lock, without ever blocking the event loop for it. */
export interface Line {
  /**
   * Runs the work at once when nobody waits and the database is free; else in order of arrival, when it is free.
   * After the wait it rejects, and the work is never run.
   * @throws WebhookInboxError `ERR_STORE_UNAVAILABLE`, or what the work throws if that is one of our errors
   */
  run<T>(work: () => T): Promise<T>
  /** Refuses what waits and all that comes. */
  close(): void
}

interface Waiter {
  readonly deadlineMs: number
  /** False when the database is still busy. */
  attempt(): boolean
  reject(error: WebhookInboxError): void
}

/** @param waitMs the longest wait of one piece of work */
export function createLine(waitMs: number): Line {
  const waiting: Waiter[] = []
  let closed = false
  let lastBusy: unknown

  // One at a time asks for the lock: a crowd that polls by itself would block the loop that it wants to keep free.
  async function serve(): Promise<void> {
    let delayMs = firstDelayMs
    while (waiting.length > 0) {
      await pause(delayMs * (0.5 + Math.random() / 2))
      refuseLate()
      if (waiting[0]?.attempt() === true) {
        waiting.shift()
        delayMs = 0
      } else {
        delayMs = Math.min(Math.max(delayMs * 2, firstDelayMs), longestDelayMs)
      }
    }
  }

  // All at once: a pause for each would keep the next ones waiting until their own time is up too.
  function refuseLate(): void {
    const nowMs = performance.now()
    const onTime = waiting.findIndex(({ deadlineMs }) => deadlineMs > nowMs)
    const late = waiting.splice(0, onTime === -1 ? waiting.length : onTime)
    for (const waiter of late) waiter.reject(stillBusy(waitMs, lastBusy))
  }

  return {
    run<T>(work: () => T): Promise<T> {
      return new Promise((resolve, reject) => {
        const attempt = (): boolean => {
          try {
            resolve(work())
            return true
          } catch (error) {
            if (isBusy(error)) {
              lastBusy = error
              return false
            }
            reject(asStoreError(error))
            return true
          }
        }
        if (closed) return reject(closedError())
        if (waiting.length === 0 && attempt()) return
        waiting.push({ deadlineMs: performance.now() + waitMs, attempt, reject })
        if (waiting.length === 1) void serve()
      })
    },

    close() {
      closed = true
      for (const waiter of waiting.splice(0)) waiter.reject(closedError())
    },
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function closedError(): WebhookInboxError {
  return storeUnavailable('The SQLite store is closed.')
}

function stillBusy(waitMs: number, cause: unknown): WebhookInboxError {
  return cause === inForeignTransaction
    ? storeUnavailable(
        `The database that was handed to sqliteStore() has been inside a transaction of yours for ${waitMs} ms. Keep transactions short, or give the store its own connection: sqliteStore({ path }).`,
      )
    : storeUnavailable(
        `The SQLite database was locked by another connection for ${waitMs} ms.`,
        cause,
      )
}

/** Keeps our own errors; everything else means that the store cannot answer. */
export function asStoreError(error: unknown): unknown {
  if (hasCode(error, 'ERR_STORE_SETUP') || hasCode(error, 'ERR_OPTION')) return error
  if (hasCode(error, 'ERR_TRANSACTION') || hasCode(error, 'ERR_STORE_UNAVAILABLE')) return error
  const reason = error instanceof Error ? error.message : 'unknown error'
  return storeUnavailable(`The SQLite store could not answer: ${reason}.`, error)
}

/** Whether it may work in a moment: somebody else holds a lock, or uses this connection. */
export function isBusy(error: unknown): boolean {
  if (error === inForeignTransaction) return true
  const primary = (resultCode(error) ?? 0) & 0xff
  // SQLITE_BUSY, SQLITE_LOCKED and SQLITE_PROTOCOL (a race for the write-ahead log).
  if (primary === 5 || primary === 6 || primary === 15) return true
  return error instanceof TypeError && /connection is busy/.test(error.message)
}

/** Whether a read snapshot is too old to write on: only a new transaction helps. */
export function isStaleSnapshot(error: unknown): boolean {
  return resultCode(error) === 517
}

/** Whether the statement itself does not fit the database, for instance for want of a table. */
export function isStatementError(error: unknown): boolean {
  return resultCode(error) === 1
}

const codesByName: Readonly<Record<string, number>> = {
  SQLITE_ERROR: 1,
  SQLITE_BUSY: 5,
  SQLITE_LOCKED: 6,
  SQLITE_PROTOCOL: 15,
  SQLITE_BUSY_RECOVERY: 261,
  SQLITE_LOCKED_SHAREDCACHE: 262,
  SQLITE_BUSY_SNAPSHOT: 517,
  SQLITE_LOCKED_VTAB: 518,
  SQLITE_BUSY_TIMEOUT: 773,
}

// node:sqlite has the number in `errcode`, bun:sqlite in `errno`, better-sqlite3 the name in `code`.
function resultCode(error: unknown): number | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('errcode' in error && typeof error.errcode === 'number') return error.errcode
  if ('errno' in error && typeof error.errno === 'number') return error.errno
  return 'code' in error && typeof error.code === 'string' ? codesByName[error.code] : undefined
}
