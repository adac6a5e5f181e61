/** A promise that settles late, and what to do then. */
export type Deadline<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: unknown }

/** Says that a call took longer than it was given. */
export const timedOut: unique symbol = Symbol('timedOut')

/**
 * Waits for a call at most `timeoutMs`. Never rejects and leaves no unhandled rejection: a late end goes to
 * `onLate`. A call that throws at once counts as rejected.
 */
export async function withDeadline<T>(
  call: () => Promise<T>,
  timeoutMs: number,
  onLate?: (late: Deadline<T>) => void,
): Promise<Deadline<T>> {
  let expired = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const ended = (async () => ({ ok: true, value: await call() }) as const)().catch(
    (error: unknown) => ({ ok: false, error }) as const,
  )
  const expiry = new Promise<Deadline<T>>((resolve) => {
    timer = setTimeout(() => {
      expired = true
      resolve({ ok: false, error: timedOut })
    }, timeoutMs)
  })
  if (onLate !== undefined) {
    ended.then((late) => {
      if (expired) onLate(late)
    })
  }
  const first = await Promise.race([ended, expiry])
  clearTimeout(timer)
  return first
}

/** Resolves after `ms` without keeping a process alive for it. */
export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => unref(setTimeout(resolve, ms)))
}

/** Lets a Node-like process exit while the timer waits; elsewhere timers are numbers and nothing is to be done. */
export function unref<Timer>(timer: Timer): Timer {
  if (
    typeof timer === 'object' &&
    timer !== null &&
    'unref' in timer &&
    typeof timer.unref === 'function'
  ) {
    timer.unref()
  }
  return timer
}
