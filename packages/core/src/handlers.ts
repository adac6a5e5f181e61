/** Which handler runs a delivery: by provider, event and action, the most exact name first. */
import type { ClaimedDelivery, Delivery } from './delivery.ts'
import { optionError, rejectUnknownOptions } from './errors.ts'
import { countOption } from './options.ts'
import { backoffOption, type Policy, type RetryOptions } from './policy.ts'
import type { AnyWebhook, WebhookRegistry } from './registry.ts'
import type { BackoffOptions } from './retry.ts'

/** What a worker hands to a handler beside the delivery. */
export interface WorkerContext {
  /** Aborted when the claim is lost, the run takes too long or the worker stops; the same as the delivery's. */
  readonly signal: AbortSignal
}

/** Runs a delivery: returning completes it, throwing fails it. */
export type WorkerHandler<Webhook extends ClaimedDelivery = AnyWebhook> = (
  webhook: Webhook,
  context: WorkerContext,
) => unknown

/** A handler with a retry policy of its own; what it leaves out is the inbox's. */
export interface HandlerEntry<Webhook extends ClaimedDelivery = AnyWebhook> {
  readonly handler: WorkerHandler<Webhook>
  readonly retry?: Omit<RetryOptions, 'inlineBackoffMs'>
}

/**
 * The delivery that a name in `handlers` stands for: `github.push`, `github.pull_request.opened`, `github.*`, `push`,
 * `pull_request.opened`, or `*`.
 */
export type WebhookNamed<Name extends string> = Name extends '*'
  ? AnyWebhook
  : Name extends `${infer Provider extends keyof WebhookRegistry}.${infer Rest}`
    ? Rest extends '*'
      ? WebhookRegistry[Provider]
      : OfEvent<WebhookRegistry[Provider], Rest>
    : OfEvent<AnyWebhook, Name>

type OfEvent<Webhook extends ClaimedDelivery, Name extends string> = Name extends Webhook['event']
  ? Extract<Webhook, { readonly event: Name }>
  : Name extends `${infer Event extends Webhook['event']}.${infer Action}`
    ? ClaimedDelivery<
        Extract<
          Extract<Webhook, { readonly event: Event }>['payload'],
          { readonly action: Action }
        >,
        Event
      >
    : ClaimedDelivery

/** A handler, ready to be asked. */
export interface Route {
  readonly handler: WorkerHandler<never>
  readonly maxAttempts: number
  readonly backoff: BackoffOptions
}

export interface Routes {
  find(delivery: Pick<Delivery, 'provider' | 'event' | 'action'>): Route | undefined
  /** The highest limit of all. */
  readonly maxAttempts: number
}

const defaultMaxAttempts = 8

/** Checks `handler` or `handlers` once. @throws WebhookInboxError `ERR_OPTION` */
export function readRoutes(
  where: string,
  policy: Policy,
  { handler, handlers }: { readonly handler?: unknown; readonly handlers?: unknown },
): Routes {
  const byName = new Map<string, Route>()
  if (handler !== undefined && handlers !== undefined)
    throw optionError(`${where}: pass "handler" or "handlers", not both.`)
  if (handlers === undefined) {
    byName.set('*', readRoute(`${where}: "handler"`, policy, handler))
  } else {
    if (typeof handlers !== 'object' || handlers === null || Array.isArray(handlers)) {
      throw optionError(
        `${where}: "handlers" must be an object of names and handlers, for instance { 'github.push': async (webhook) => { … } }.`,
      )
    }
    for (const [name, entry] of Object.entries(handlers)) {
      checkName(where, name)
      byName.set(name, readRoute(`${where}: the handler of "${name}"`, policy, entry))
    }
    if (byName.size === 0) throw optionError(`${where}: "handlers" is empty.`)
  }
  return {
    maxAttempts: Math.max(...[...byName.values()].map(({ maxAttempts }) => maxAttempts)),
    find({ provider, event, action }) {
      const names = [
        ...(action === undefined ? [] : [`${provider}.${event}.${action}`]),
        `${provider}.${event}`,
        ...(action === undefined ? [] : [`${event}.${action}`]),
        event,
        `${provider}.*`,
        '*',
      ]
      for (const name of names) {
        const route = byName.get(name)
        if (route !== undefined) return route
      }
      return undefined
    },
  }
}

function readRoute(where: string, policy: Policy, entry: unknown): Route {
  const own = typeof entry === 'function' ? { handler: entry } : entry
  if (!isEntry(own)) {
    throw optionError(
      `${where} is ${entry === undefined ? 'missing' : 'no function'}. Pass async (webhook) => { … }, or { handler, retry } for a policy of its own.`,
    )
  }
  rejectUnknownOptions(where, own, ['handler', 'retry'])
  const { retry = {} } = own
  rejectUnknownOptions(`${where}: "retry"`, retry, ['maxAttempts', 'minMs', 'maxMs', 'random'])
  return {
    handler: own.handler,
    maxAttempts:
      countOption(where, 'retry.maxAttempts', retry.maxAttempts) ??
      policy.maxAttempts ??
      defaultMaxAttempts,
    backoff: backoffOption(where, retry, policy.backoff),
  }
}

function isEntry(value: unknown): value is HandlerEntry<never> {
  return (
    typeof value === 'object' &&
    value !== null &&
    'handler' in value &&
    typeof value.handler === 'function'
  )
}

// A pattern that looks as if it would match, and never does, would send every delivery to the dead letters.
function checkName(where: string, name: string): void {
  if (name === '*' || /^[a-z0-9-]+\.\*$/.test(name) || /^[\x21-\x29\x2b-\x7e]+$/.test(name)) return
  throw optionError(
    `${where}: "${name}" in "handlers" matches nothing. Use 'github.push', 'github.pull_request.opened', 'pull_request.opened', 'push', 'github.*' or '*'.`,
  )
}
