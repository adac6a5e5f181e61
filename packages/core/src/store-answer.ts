/** What a store answers, checked: an answer that is none must never turn into a 2xx. */
import { storeUnavailable } from './errors.ts'
import type { ClaimResult, RenewResult, SettleResult, Store } from './store.ts'

/**
 * The result of one of the entries that were claimed.
 * @throws WebhookInboxError `ERR_STORE_UNAVAILABLE` when the store answered with something else
 */
export function claimResultOf(
  store: Store,
  answer: readonly ClaimResult[],
  index: number,
): ClaimResult {
  const result = Array.isArray(answer) ? answer[index] : undefined
  if (isClaimResult(result)) return result
  throw noAnswer(store, 'claim')
}

/** @throws WebhookInboxError `ERR_STORE_UNAVAILABLE` when it is none */
export function renewResultOf(store: Store, answer: RenewResult): RenewResult {
  if (answer === 'ok' || answer === 'lost') return answer
  throw noAnswer(store, 'renew')
}

/** @throws WebhookInboxError `ERR_STORE_UNAVAILABLE` when it is none */
export function settleResultOf(
  store: Store,
  operation: 'complete' | 'fail' | 'release',
  answer: SettleResult,
): SettleResult {
  if (answer === 'ok' || answer === 'already' || answer === 'lost') return answer
  throw noAnswer(store, operation)
}

function isClaimResult(value: unknown): value is ClaimResult {
  if (typeof value !== 'object' || value === null || !('status' in value)) return false
  const has = (name: string): boolean => Number.isSafeInteger(Reflect.get(value, name))
  switch (value.status) {
    case 'claimed':
      return has('fence') && has('attempt')
    case 'processing':
      return has('leaseMs')
    case 'waiting':
      return has('retryInMs')
    default:
      return ['pending', 'completed', 'dead'].includes(String(value.status))
  }
}

function noAnswer(store: Store, operation: string): Error {
  return storeUnavailable(
    `The ${store.name} store answered "${operation}" with something that is no result.`,
  )
}
