import { asStoreError, isBusy } from './busy.ts'
import { type Connection, inWriteTransaction } from './statement.ts'

interface Waiting {
  /** Makes the change, and answers how its caller is told, once that is on the disk. */
  run(nowMs: number): () => void
  reject(error: unknown): void
}

/**
 * Makes one transaction of the changes that are asked for in one turn of the event loop, such as those of the items of a
 * request: each commit waits for the disk, and nothing else happens meanwhile.
 * @param whenFree runs synchronous work when the database is free; again, from the beginning, when it was not
 */
export function createTogether(
  connection: Connection,
  whenFree: <T>(work: (nowMs: number) => T) => Promise<T>,
): <T>(change: (nowMs: number) => T) => Promise<T> {
  let waiting: Waiting[] = []

  async function flush(): Promise<void> {
    const batch = waiting
    waiting = []
    try {
      for (const tell of await whenFree((nowMs) => runAll(connection, batch, nowMs))) tell()
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  return <T>(change: (nowMs: number) => T) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({
        run(nowMs) {
          const value = change(nowMs)
          return () => resolve(value)
        },
        reject,
      })
      if (waiting.length === 1) queueMicrotask(flush)
    })
}

function runAll(
  connection: Connection,
  batch: readonly Waiting[],
  nowMs: number,
): readonly (() => void)[] {
  try {
    return inWriteTransaction(connection, () => batch.map(({ run }) => run(nowMs)))
  } catch (error) {
    if (batch.length === 1 || isBusy(error)) throw error
    // One of them is at fault, and the others are not to suffer for it.
    return batch.map(({ run, reject }) => {
      try {
        return inWriteTransaction(connection, () => run(nowMs))
      } catch (own) {
        return () => reject(asStoreError(own))
      }
    })
  }
}
