/** The run of a delivery that a worker has taken: from the stored bytes to the settlement. */
import type { Claim } from './claim.ts'
import type { ClaimedDelivery, Delivery } from './delivery.ts'
import { isPermanentError } from './errors.ts'
import type { Routes } from './handlers.ts'
import { toHeaderMap } from './headers.ts'
import type { Inbox, TakenClaim } from './inbox.ts'
import { parseRequest } from './providers/interpret.ts'
import type { Provider } from './providers/provider.ts'
import { backoffMs } from './retry.ts'
import { retryHintMs } from './retry-hint.ts'
import { claimedDelivery, idempotencySeed } from './run.ts'
import { openSealed } from './seal.ts'
import type { StoredPayload, TakenDelivery } from './store.ts'

export interface RunSettings {
  readonly inbox: Inbox
  readonly routes: Routes
  readonly providerOf: (name: string) => Provider | undefined
  readonly onError: (error: unknown) => void
}

/** How a run ended. */
interface Failure {
  readonly code: string
  readonly dead?: boolean
  readonly retryInMs?: number
  readonly maxAttempts?: number
}

/**
 * Runs one delivery and settles it. Never rejects.
 * @returns when it is due again in milliseconds, if it is
 */
export async function runTaken(
  job: TakenClaim,
  settings: RunSettings,
): Promise<number | undefined> {
  const { claim, ref, taken } = job
  const { observer, policy } = settings.inbox
  const startedAtMs = performance.now()

  async function fail({ dead = false, ...failure }: Failure): Promise<number | undefined> {
    const result = await claim.fail({ dead, ...failure })
    const durationMs = performance.now() - startedAtMs
    if (result === 'lost') reportLost()
    else if (result === 'completed')
      observer({ type: 'completed', attempt: claim.attempt, durationMs, ...ref })
    else if (result !== 'unavailable')
      observer({ type: result, attempt: claim.attempt, durationMs, code: failure.code, ...ref })
    return result === 'failed' ? failure.retryInMs : undefined
  }

  function reportLost(): void {
    const durationMs = performance.now() - startedAtMs
    observer({ type: 'claim_lost', attempt: claim.attempt, durationMs, ...ref })
  }

  // It waited for its turn, and its lease or its time ended meanwhile.
  if (claim.signal.aborted) {
    await claim.release()
    return undefined
  }
  const { key } = claim.hold
  const payload = await openSealed(policy.seal, key, taken.payload)
  if (typeof payload === 'string') return fail({ code: payload, dead: true })
  const delivery = readDelivery(taken, payload, settings.providerOf(key.provider))
  const route = settings.routes.find(delivery)
  if (route === undefined) return fail({ code: 'no_handler', dead: true })
  const { backoff, maxAttempts } = route
  // Its handler's own limit may be lower than the one that the store was asked with.
  if (claim.attempt > maxAttempts) return fail({ code: 'attempts_exhausted', dead: true })

  let said: { readonly retryable: boolean } | undefined
  const webhook = claimedDelivery({
    delivery,
    key,
    claim,
    keySeed: await idempotencySeed(key),
    onFail(error, retryable) {
      said = { retryable }
      if (error !== undefined) settings.onError(error)
    },
  })

  const retry = (code: string, error?: unknown): Failure => ({
    code,
    maxAttempts,
    retryInMs: retryHintMs(error) ?? backoffMs(claim.attempt, backoff),
  })

  const end = await endOf(() => callHandler(route.handler, webhook), claim)
  if (end.status === 'timeout') return fail(retry('run_timeout'))
  if (end.status === 'threw') {
    const { error } = end
    if (claim.signal.aborted && claim.signal.reason === 'shutdown') {
      await claim.release()
      observer({ type: 'released', ...ref })
      return undefined
    }
    settings.onError(error)
    return isPermanentError(error)
      ? fail({ code: 'handler_rejected', dead: true })
      : fail(retry('handler_error', error))
  }
  if (said !== undefined)
    return said.retryable
      ? fail(retry('handler_failed'))
      : fail({ code: 'handler_failed', dead: true })

  const result = await claim.complete()
  // The handler swallowed the rollback of the transaction that it had completed in.
  if (result === 'rolled_back') return fail(retry('transaction_rolled_back'))
  if (result === 'lost' || result === 'completed_elsewhere') reportLost()
  // Otherwise the store goes on being told, or the end of the lease will tell.
  if (result === 'completed') {
    const durationMs = performance.now() - startedAtMs
    observer({ type: 'completed', attempt: claim.attempt, durationMs, ...ref })
  }
  return undefined
}

type RunEnd =
  | { readonly status: 'returned' | 'timeout' }
  | { readonly status: 'threw'; readonly error: unknown }

// A handler that does not heed its signal must not keep the worker's place for ever.
function endOf(run: () => unknown, claim: Claim): Promise<RunEnd> {
  return new Promise((resolve) => {
    claim.onTimeout(() => resolve({ status: 'timeout' }))
    const own = async (): Promise<RunEnd> => {
      try {
        await run()
        return { status: 'returned' }
      } catch (error) {
        return { status: 'threw', error }
      }
    }
    own().then(resolve)
  })
}

function callHandler(handler: unknown, webhook: ClaimedDelivery): unknown {
  if (typeof handler !== 'function') throw new TypeError('A handler is a function.')
  return handler(webhook, { signal: webhook.signal })
}

function readDelivery(
  { hold, event, action, receivedAt }: TakenDelivery,
  { body, headers }: StoredPayload,
  provider: Provider | undefined,
): Delivery {
  const map = toHeaderMap(headers)
  const parsed = provider === undefined ? undefined : parseRequest(provider, map, body)
  const own = typeof parsed === 'object' ? parsed : undefined
  return {
    provider: hold.key.provider,
    endpoint: hold.key.endpoint,
    id: own?.deliveryId ?? hold.key.deliveryId,
    event: event ?? own?.event ?? '',
    action: action ?? own?.action,
    receivedAt,
    headers: map,
    rawBody: body,
    // An entry that this process does not know: most senders send JSON.
    payload: own === undefined ? readJson(body) : own.payload,
  }
}

function readJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}
