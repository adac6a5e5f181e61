/** The run of a delivery that a worker has taken: from the stored bytes to the settlement. */
import type { Claim } from './claim.ts'
import type { ClaimedDelivery, Delivery } from './delivery.ts'
import { isPermanentError } from './errors.ts'
import type { Routes } from './handlers.ts'
import { toHeaderMap } from './headers.ts'
import type { Inbox, TakenClaim } from './inbox.ts'
import { eventsHeader, type ItemClaims, joinOwner, openItems, soleItem } from './items.ts'
import { decodeBody } from './providers/decode.ts'
import { type ParsedItem, parseStored } from './providers/parse.ts'
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
  /** Hears which items the delivery has claimed, to give them back when the process stops. */
  readonly onItems: (items: ItemClaims) => void
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
  // An item that has a record with bytes: that record is taken itself.
  let isSole = false

  async function fail({ dead = false, ...failure }: Failure): Promise<number | undefined> {
    if (items !== undefined && isSole) {
      const result = await items.claim.fail({ dead, ...failure })
      return result === 'failed' ? failure.retryInMs : undefined
    }
    await items?.claim.fail({ dead, code: failure.code })
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

  async function release(): Promise<undefined> {
    if (!isSole) await items?.claim.release()
    await claim.release()
    observer({ type: 'released', ...ref })
    return undefined
  }

  const handler = route.handler
  const keySeed = await idempotencySeed(key)

  /** Runs the handler, and settles what it ran for. Undefined: that is done. */
  async function run(): Promise<Failure | 'released' | undefined> {
    let said: { readonly retryable: boolean } | undefined
    const webhook = claimedDelivery({
      delivery,
      key,
      claim: items?.claim ?? claim,
      keySeed,
      items,
      onFail(error, retryable) {
        said = { retryable }
        if (error !== undefined) settings.onError(error)
      },
    })
    const end = await endOf(() => callHandler(handler, webhook), claim)
    if (end.status === 'timeout') return retry('run_timeout')
    if (end.status === 'threw') {
      const { error } = end
      if (claim.signal.aborted && claim.signal.reason === 'shutdown') return 'released'
      settings.onError(error)
      return isPermanentError(error)
        ? { code: 'handler_rejected', dead: true }
        : retry('handler_error', error)
    }
    if (said !== undefined)
      return said.retryable ? retry('handler_failed') : { code: 'handler_failed', dead: true }
    if (items === undefined) return undefined
    const result = await items.claim.complete()
    if (result === 'rolled_back') return retry('transaction_rolled_back')
    return items.failed() ? retry('items_unfinished') : undefined
  }

  if (parsedItems === undefined) {
    const end = await run()
    if (end === 'released') return release()
    return end === undefined ? complete() : fail(end)
  }

  const own = parsedItems.find(({ id }) => id === key.deliveryId)
  if (own !== undefined) {
    isSole = true
    items = soleItem({ item: own, key, ref, claim }, settings)
    const end = await run()
    if (end === 'released') return release()
    return end === undefined ? undefined : fail(end)
  }

  // Items that another run has in hand are waited for and cost no attempt: that run ends within its time, and so does
  // this one.
  let todo = parsedItems
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(waitMs * 2, longestWaitMs)) {
    const opened = await openItems({
      inbox: settings.inbox,
      batch: { key, ref },
      items: todo,
      minRetentionMs: provider?.retentionMs ?? 0,
      redeliverDead: false,
      stored: payload,
      onError: settings.onError,
    })
    if (opened.status === 'unavailable') return fail(retry('store_unavailable'))
    if (opened.status === 'claimed') {
      items = joinOwner(claim, opened.items)
      settings.onItems(items)
      const end = await run()
      if (end === 'released') return release()
      if (end !== undefined) return fail(end)
    }
    todo = opened.status === 'claimed' ? opened.items.busy : opened.busy
    if (todo.length === 0) return complete()
    await abortedOrAfter(waitMs, claim.signal)
    if (claim.signal.aborted)
      return claim.signal.reason === 'shutdown' ? release() : fail(retry('items_busy'))
  }
}

const firstWaitMs = 50
const longestWaitMs = 2000

async function abortedOrAfter(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    function end(): void {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve()
    }
  })
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
  const { [eventsHeader]: wanted, ...sent } = headers
  const map = toHeaderMap(sent)
  const { deliveryId } = hold.key
  const decoded = provider === undefined ? undefined : decodeBody(provider, body)
  const own =
    provider === undefined || decoded === undefined
      ? undefined
      : await parseStored(provider, { headers: map, decoded, body })
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
    payload: decoded === undefined ? readJson(body) : decoded.payload,
  }
  return { delivery, items: own?.items?.filter(isWantedBy(wanted, provider?.pingEvents)) }
}

function isWantedBy(
  wanted: string | undefined,
  pingEvents: readonly string[] = [],
): (item: ParsedItem) => boolean {
  const events = wanted?.split(' ')
  return ({ event }) =>
    events === undefined ? !pingEvents.includes(event) : events.includes(event)
}

function isReplayGuarded(deliveryId: string): boolean {
  return /^sha256:[0-9a-f]{64}:[0-9a-f]{16}$/.test(deliveryId)
}

function readJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}
