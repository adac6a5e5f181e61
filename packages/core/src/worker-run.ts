/** The run of a delivery that a worker has taken: from the stored bytes to the settlement. */
import { backend } from '#crypto'
import type { Claim } from './claim.ts'
import { toHex } from './crypto/bytes.ts'
import type { ClaimedDelivery, Delivery, HeaderMap } from './delivery.ts'
import { isPermanentError } from './errors.ts'
import type { Routes } from './handlers.ts'
import { toHeaderMap } from './headers.ts'
import type { Inbox, TakenClaim } from './inbox.ts'
import { type ItemClaims, joinOwner, openItems } from './items.ts'
import { decodeBody } from './providers/decode.ts'
import { type ParsedItem, type ParsedRequest, parseRequest } from './providers/parse.ts'
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

  let items: ItemClaims | undefined

  async function fail({ dead = false, ...failure }: Failure): Promise<number | undefined> {
    // Theirs is the sender's schedule, or this delivery's: they are claimed with it.
    await items?.claim.fail({ code: failure.code, dead })
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

  async function complete(): Promise<number | undefined> {
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

  // It waited for its turn, and its lease or its time ended meanwhile.
  if (claim.signal.aborted) {
    await claim.release()
    return undefined
  }
  const { key } = claim.hold
  const payload = await openSealed(policy.seal, key, taken.payload)
  if (typeof payload === 'string') return fail({ code: payload, dead: true })
  const provider = settings.providerOf(key.provider)
  const { delivery, items: parsedItems } = await readDelivery(taken, payload, provider)
  const route = settings.routes.find(delivery)
  if (route === undefined) return fail({ code: 'no_handler', dead: true })
  const { backoff, maxAttempts } = route
  // Its handler's own limit may be lower than the one that the store was asked with.
  if (claim.attempt > maxAttempts) return fail({ code: 'attempts_exhausted', dead: true })

  function retry(code: string, error?: unknown): Failure {
    const retryInMs = retryHintMs(error) ?? backoffMs(claim.attempt, backoff)
    return { code, maxAttempts, retryInMs }
  }

  if (parsedItems !== undefined) {
    const opened = await openItems({
      inbox: settings.inbox,
      batch: { key, ref },
      items: parsedItems,
      minRetentionMs: provider?.retentionMs ?? 0,
      redeliverDead: false,
      onError: settings.onError,
    })
    if (opened.status === 'unavailable') return fail(retry('store_unavailable'))
    if (opened.status === 'copies') {
      if (opened.busyMs === undefined) return complete()
      // Whoever has them in hand is done long before a lease ends, for the most part.
      const { retryInMs = 0, ...busy } = retry('items_busy')
      return fail({ ...busy, retryInMs: Math.min(retryInMs, opened.busyMs) })
    }
    items = joinOwner(claim, opened.items)
  }

  let said: { readonly retryable: boolean } | undefined
  const webhook = claimedDelivery({
    delivery,
    key,
    claim: items?.claim ?? claim,
    keySeed: await idempotencySeed(key),
    items,
    onFail(error, retryable) {
      said = { retryable }
      if (error !== undefined) settings.onError(error)
    },
  })

  const end = await endOf(() => callHandler(route.handler, webhook), claim)
  if (end.status === 'timeout') return fail(retry('run_timeout'))
  if (end.status === 'threw') {
    const { error } = end
    if (claim.signal.aborted && claim.signal.reason === 'shutdown') {
      await items?.claim.release()
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

  if (items !== undefined) {
    const result = await items.claim.complete()
    if (result === 'rolled_back') return fail(retry('transaction_rolled_back'))
    if (items.unfinished()) return fail(retry('items_unfinished'))
  }
  return complete()
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

async function readDelivery(
  { hold, event, action, receivedAt }: TakenDelivery,
  { body, headers }: StoredPayload,
  provider: Provider | undefined,
): Promise<{
  readonly delivery: Delivery
  readonly items: readonly ParsedItem[] | undefined
}> {
  const map = toHeaderMap(headers)
  const own = provider === undefined ? undefined : await parseStored(provider, map, body)
  const { deliveryId } = hold.key
  const delivery = {
    provider: hold.key.provider,
    endpoint: hold.key.endpoint,
    // Under a replay guard the key holds a digest in place of the sender's id.
    id: isReplayGuarded(deliveryId) ? (own?.deliveryId ?? deliveryId) : deliveryId,
    event: event ?? own?.event ?? '',
    action: action ?? own?.action,
    receivedAt,
    headers: map,
    rawBody: body,
    // An entry that this process does not know: most senders send JSON.
    payload: own === undefined ? readJson(body) : own.payload,
  }
  return { delivery, items: own?.items }
}

function isReplayGuarded(deliveryId: string): boolean {
  return /^sha256:[0-9a-f]{64}:[0-9a-f]{16}$/.test(deliveryId)
}

async function parseStored(
  provider: Provider,
  headers: HeaderMap,
  body: Uint8Array,
): Promise<ParsedRequest | undefined> {
  const decoded = decodeBody(provider, headers, body)
  const digest = toHex(await backend.digest('SHA-256', body))
  const parsed = await parseRequest(provider, { headers, url: '', decoded, digest })
  return typeof parsed === 'string' ? undefined : parsed
}

function readJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}
