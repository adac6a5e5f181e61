/** The run of a delivery that a worker has taken: from the stored bytes to the settlement. */
import type { Claim } from './claim.ts'
import type { ClaimedDelivery, Delivery } from './delivery.ts'
import { isPermanentError } from './errors.ts'
import type { Routes } from './handlers.ts'
import { toHeaderMap } from './headers.ts'
import type { Inbox, TakenClaim } from './inbox.ts'
import { type ItemClaims, joinOwner, openItems, soleItem } from './items.ts'
import { decodeBody } from './providers/decode.ts'
import { type ParsedItem, parseStored } from './providers/parse.ts'
import type { Provider } from './providers/provider.ts'
import { backoffMs } from './retry.ts'
import { retryHintMs } from './retry-hint.ts'
import { claimedDelivery, idempotencySeed } from './run.ts'
import { openSealed } from './seal.ts'
import type { StoredPayload, TakenDelivery } from './store.ts'
import { readNotes } from './stored-headers.ts'

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
  // An item with a record of its own: its claim is the delivery's.
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
  const { delivery, sent, items: parsedItems, sole } = await readDelivery(taken, payload, provider)
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
    // The store was late: the process has stopped meanwhile, or the time is over, and nobody may begin.
    if (claim.signal.aborted)
      return claim.signal.reason === 'shutdown' ? 'released' : retry('run_timeout')
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
    // It may have committed: the next attempt is told.
    if (result === 'unknown') return retry('completion_unknown')
    return items.failed() ? retry('items_unfinished') : undefined
  }

  if (parsedItems === undefined) {
    if (sole !== undefined) {
      isSole = true
      const again = retry('handler_failed')
      items = soleItem({ item: sole, key, ref, claim }, { ...settings, retry: again })
    }
    const end = await run()
    if (end === 'released') return release()
    if (end !== undefined) return fail(end)
    return isSole ? undefined : complete()
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
      stored: true,
      keep: { headers: sent, event: delivery.event },
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
  /** The headers as they were sent. */
  readonly sent: StoredPayload['headers']
  /** Of a list the events that are wanted. */
  readonly items: readonly ParsedItem[] | undefined
  /** One event of a list, which has a record of its own. */
  readonly sole: ParsedItem | undefined
}> {
  const { headers: sent, notes } = readNotes(headers)
  const map = toHeaderMap(sent)
  const { provider: name, endpoint, deliveryId } = hold.key
  const common = { provider: name, endpoint, receivedAt, headers: map, rawBody: body }
  if (notes.itemOf !== undefined) {
    const payload = readJson(body)
    return {
      delivery: { ...common, id: deliveryId, event: notes.itemOf, action: undefined, payload },
      sent,
      items: undefined,
      sole: { id: deliveryId, event: event ?? 'unknown', payload },
    }
  }
  const decoded = provider === undefined ? undefined : decodeBody(provider, body, notes.bodyIs)
  const own =
    provider === undefined || decoded === undefined
      ? undefined
      : await parseStored(provider, { headers: map, decoded, body })
  const delivery = {
    ...common,
    id: notes.deliveryId ?? deliveryId,
    event: event ?? own?.event ?? '',
    action: action ?? own?.action,
    // An entry that this process does not know: most senders send JSON.
    payload: decoded === undefined ? readJson(body) : decoded.payload,
  }
  const wanted = notes.events === undefined ? undefined : new Set(notes.events)
  const items = own?.items?.filter(
    (item) => wanted?.has(item.event) ?? provider?.pingEvents?.includes(item.event) !== true,
  )
  return { delivery, sent, items, sole: undefined }
}

function readJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}
