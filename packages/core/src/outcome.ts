import { isPermanentError } from './errors.ts'

/** What to do with a claim, by the answer that the handler gave. */
export type SettleAs = 'complete' | 'retry' | 'dead'

export function isSettleAs(value: unknown): value is SettleAs {
  return value === 'complete' || value === 'retry' || value === 'dead'
}

/**
 * Overrides what a final HTTP status means. `undefined` leaves the default: 2xx and 3xx complete; 400, 410, 413,
 * 415 and 422 fail for good; every other status is to be run again.
 */
export type SettleBy = (status: number) => SettleAs | undefined

/** How a run ended, as an adapter saw it. */
export interface RunEnd {
  /** The final HTTP status of the handler's answer. */
  readonly status: number
  /** What the handler threw, where the framework shows it: only refines a failure. */
  readonly error?: unknown
}

// The request can never be right: sending it again cannot help.
const finalStatuses = new Set([400, 410, 413, 415, 422])

export function settleAs(end: RunEnd, chosen: SettleAs | undefined): SettleAs {
  if (chosen !== undefined) return chosen
  if (end.status >= 200 && end.status < 400) return 'complete'
  return finalStatuses.has(end.status) || isPermanentError(end.error) ? 'dead' : 'retry'
}
