/** How long to wait before an attempt: exponential from `minMs` to `maxMs`, with full jitter. */
export interface BackoffOptions {
  readonly minMs: number
  readonly maxMs: number
  /** 0 to 1. @default Math.random */
  readonly random?: () => number
}

/**
 * The delay after a failed attempt, in whole milliseconds: anything from 0 to `minMs × 2^(attempt − 1)`, capped
 * at `maxMs`. Full jitter spreads a crowd that failed together.
 * @param attempt 1 for the first
 */
export function backoffMs(
  attempt: number,
  { minMs, maxMs, random = Math.random }: BackoffOptions,
): number {
  const ceiling = Math.min(maxMs, minMs * 2 ** Math.min(attempt - 1, 50))
  return Math.round(ceiling * random())
}
