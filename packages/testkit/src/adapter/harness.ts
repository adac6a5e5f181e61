import {
  type ClaimedDelivery,
  createInbox,
  type DeliveryKey,
  type EndpointOptions,
  type Inbox,
  memoryStore,
  type ObserverEvent,
  PermanentError,
  type PolicyOptions,
  type WebhookOptions,
} from '@webhook-inbox/core'
import type { Expect } from '../runner.ts'
import { signRequest } from '../sign-request.ts'
import type { StoreHarness } from '../store/harness.ts'
import { type ObservedStore, observeStore } from './observed-store.ts'

/**
 * What an adapter has beyond the common. A guarantee that needs one is registered only when it is declared.
 *
 * - `route`: a route of the framework stands behind the middleware
 * - `next`: on a `path` mount, requests of other paths go on to what stands behind
 * - `socket`: `url` is a real server
 */
export type AdapterFeature = 'route' | 'next' | 'socket'

/** How the suite gets a server that uses an adapter. */
export interface AdapterHarness {
  /** Named in the report, for instance `express 5`. */
  readonly name: string
  readonly features: readonly AdapterFeature[]
  /** Where claims are kept. @default a memory store */
  readonly store?: StoreHarness
  /** Starts a server or an app. Called once or more for each guarantee. */
  serve(setup: AdapterSetup): Promise<AdapterFixture>
}

/** What has to be mounted, in plain values. */
export interface AdapterSetup {
  /** For the adapter's `githubWebhook`; the harness adds `path` itself on a `path` mount. */
  readonly options: WebhookOptions
  /**
   * - `route`: `POST /webhooks/github` runs the middleware, then {@link respond}
   * - `path`: the middleware with `path: '/webhooks/github'` sees every request; behind it one handler for all paths
   *   and methods calls {@link respond}
   */
  readonly mount: 'route' | 'path'
  /**
   * What stands behind the middleware: answer with what it returns, throw what it throws, and when it returns
   * undefined do what a handler does that answers nothing or passes on to nobody. Adapters without the feature
   * `route` never call it.
   * @param webhook what the middleware put on the request; undefined when there is none
   */
  respond(webhook: ClaimedDelivery | undefined): Promise<RouteAnswer | undefined>
}

/** The answer of a route. */
export interface RouteAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface AdapterFixture {
  /** Where the server listens, for instance `http://127.0.0.1:4711`; without `socket` any origin. */
  readonly url: string
  /** Takes a request without a socket. @default the global `fetch` on `url` */
  fetch?(request: Request): Promise<Response>
  close(): Promise<void>
}

/** A guarantee of an adapter as code. */
export type AdapterGuarantee = (test: AdapterTest) => Promise<void>

/** What one guarantee works with. */
export interface AdapterTest {
  readonly expect: Expect
  readonly features: readonly AdapterFeature[]
  /** Mounts the adapter and serves it until the guarantee is over. */
  serve(options?: ServeOptions): Promise<Site>
}

export interface ServeOptions {
  readonly mount?: 'route' | 'path'
  readonly options?: Partial<EndpointOptions>
  readonly policy?: Omit<PolicyOptions, 'observer'>
  /** In place of the store and the policy. */
  readonly inbox?: Inbox
  /** What runs: nothing returned is an answer of 200 `done`. Adapters without `route` run it as their `handler`. */
  run?(webhook: ClaimedDelivery): Promise<RouteAnswer | undefined>
  /** The route itself, in place of `run`. Needs the feature `route`. */
  respond?(webhook: ClaimedDelivery | undefined): Promise<RouteAnswer | undefined>
}

/** A served adapter, and what can be seen of it. All sites of one guarantee share their store and clock. */
export interface Site {
  readonly url: string
  readonly observed: ObservedStore
  /** The deliveries that have reached a handler. */
  readonly runs: ClaimedDelivery[]
  readonly events: ObserverEvent[]
  /** What `onError` heard. */
  readonly errors: unknown[]
  /** The path of the webhook with its origin. */
  readonly endpoint: string
  send(options?: SendOptions): Promise<Reply>
  /** Sends a request that is made already. */
  deliver(request: Request): Promise<Reply>
  /** Resolves with the first event of that type, also one of before. */
  event(type: ObserverEvent['type']): Promise<ObserverEvent>
  /** Moves the store's time. */
  advance(ms: number): Promise<void>
}

export interface SendOptions {
  readonly id?: string
  readonly event?: string
  /** The hook id; `''` sends no such header. @default '1' */
  readonly hookId?: string
  readonly payload?: unknown
  readonly body?: string | Uint8Array<ArrayBuffer>
  readonly form?: boolean
  readonly secret?: string
  readonly method?: string
  /** @default '/webhooks/github' */
  readonly path?: string
  /** Added to the request, or replaced; undefined takes a header away. */
  readonly headers?: Readonly<Record<string, string | undefined>>
}

/** An answer as plain values. */
export interface Reply {
  readonly status: number
  readonly headers: Headers
  /** The value of `webhook-inbox-status`. */
  readonly state: string | null
  readonly text: string
}

/** The secret of all requests, from GitHub's own documentation. */
export const secret = "It's a Secret to Everybody"

export const webhookPath = '/webhooks/github'

/** The key of a request that names nothing else. */
export function keyOf(deliveryId = 'd-1', endpoint = '1'): DeliveryKey {
  return { provider: 'github', endpoint, deliveryId }
}

export async function buildRequest(url: string, options: SendOptions = {}): Promise<Request> {
  const { id = 'd-1', event = 'push', hookId = '1', path = webhookPath, method = 'POST' } = options
  const signing = {
    secret: options.secret ?? secret,
    event,
    deliveryId: id,
    ...(hookId === '' ? {} : { endpoint: hookId }),
  }
  const { form = false } = options
  const signed =
    options.body instanceof Uint8Array
      ? await signRequest('github', { ...signing, body: options.body })
      : await signRequest('github', {
          ...signing,
          form,
          payload: options.payload ?? { ref: 'refs/heads/main' },
          ...(options.body === undefined ? {} : { body: options.body }),
        })
  const headers = new Headers(signed.headers)
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    if (value === undefined) headers.delete(name)
    else headers.set(name, value)
  }
  const bodiless = method === 'GET' || method === 'HEAD'
  return new Request(url + path, {
    method,
    headers,
    redirect: 'manual',
    ...(bodiless ? {} : { body: signed.body }),
  })
}

const memoryHarness: StoreHarness = {
  name: 'memory',
  async create({ now }) {
    const store = memoryStore({ now })
    return { store, close: () => store.close() }
  },
}

/** Gives one guarantee its store, its servers and its requests, and takes all down again. */
export async function runAdapterGuarantee(
  harness: AdapterHarness,
  expect: Expect,
  guarantee: AdapterGuarantee,
): Promise<void> {
  let nowMs = Date.now()
  const storage = await (harness.store ?? memoryHarness).create({ now: () => nowMs })
  const observed = observeStore(storage.store)
  const closing: (() => Promise<void>)[] = []
  const hasRoute = harness.features.includes('route')

  async function advance(ms: number): Promise<void> {
    if (storage.advance === undefined) nowMs += ms
    else await storage.advance(ms)
  }

  async function serve(serving: ServeOptions = {}): Promise<Site> {
    const { mount = 'route', options = {}, policy = {}, inbox } = serving
    const runs: ClaimedDelivery[] = []
    const events: ObserverEvent[] = []
    const errors: unknown[] = []
    const listeners = new Set<(event: ObserverEvent) => void>()
    const observer = (event: ObserverEvent): void => {
      events.push(event)
      for (const listener of listeners) listener(event)
    }

    async function run(webhook: ClaimedDelivery): Promise<RouteAnswer> {
      runs.push(webhook)
      return (await serving.run?.(webhook)) ?? { status: 200, body: 'done' }
    }
    async function respond(webhook: ClaimedDelivery | undefined): Promise<RouteAnswer | undefined> {
      if (serving.respond !== undefined) {
        if (webhook !== undefined) runs.push(webhook)
        return serving.respond(webhook)
      }
      return webhook === undefined ? { status: 200, body: 'behind' } : run(webhook)
    }
    async function handle(webhook: ClaimedDelivery): Promise<void> {
      const { status } = await run(webhook)
      if (status === 422) throw new PermanentError('refused by the handler')
      if (status >= 400) throw new Error('failed by the handler')
    }
    const given = options.handler
    const handler: EndpointOptions['handler'] =
      given === undefined
        ? hasRoute || options.queue === true
          ? undefined
          : handle
        : (webhook, context) => {
            runs.push(webhook)
            return given(webhook, context)
          }
    const endpointOptions = {
      secret,
      onError: (error: unknown) => void errors.push(error),
      ...options,
      ...(handler === undefined ? {} : { handler }),
    }
    const fixture = await harness.serve({
      mount,
      respond,
      options:
        inbox === undefined
          ? { ...endpointOptions, ...policy, store: observed.store, observer }
          : { ...endpointOptions, inbox },
    })
    closing.push(() => fixture.close())

    async function deliver(request: Request): Promise<Reply> {
      const response = await (fixture.fetch === undefined ? fetch(request) : fixture.fetch(request))
      const text = await response.text()
      const { status, headers } = response
      return { status, headers, state: headers.get('webhook-inbox-status'), text }
    }

    return {
      url: fixture.url,
      endpoint: fixture.url + webhookPath,
      observed,
      runs,
      events,
      errors,
      deliver,
      advance,
      send: async (sending) => deliver(await buildRequest(fixture.url, sending)),
      event: (type) =>
        new Promise((resolve) => {
          const look = (event: ObserverEvent): void => {
            if (event.type !== type) return
            listeners.delete(look)
            resolve(event)
          }
          const before = events.find((event) => event.type === type)
          if (before !== undefined) resolve(before)
          else listeners.add(look)
        }),
    }
  }

  try {
    await guarantee({ expect, features: harness.features, serve })
  } finally {
    for (const close of closing) await close()
    await storage.close()
  }
}

/** An inbox over the store of a site, for several endpoints. */
export function sharedInbox({ observed }: Pick<Site, 'observed'>): Inbox {
  return createInbox({ store: observed.store })
}
