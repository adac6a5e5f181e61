import type { Store } from '@webhook-inbox/core'

/** A call of a store on its way. It may be delayed, refused, or answered and then delayed. */
export type Interceptor = <T>(go: () => Promise<T>) => Promise<T>

/** A store that tells what is asked of it, and can be disturbed. The answers are the real store's. */
export interface ObservedStore {
  readonly store: Store
  /** The operations in the order of their calls. */
  readonly calls: string[]
  /** Disturbs one operation from now on; `undefined` ends it. */
  intercept(operation: keyof Store, interceptor: Interceptor | undefined): void
  /** Resolves when the operation has been called `count` times. */
  called(operation: keyof Store, count?: number): Promise<void>
}

export function observeStore(inner: Store): ObservedStore {
  const calls: string[] = []
  const interceptors = new Map<string, Interceptor>()
  const waiting = new Set<() => void>()

  function call<T>(operation: keyof Store, go: () => Promise<T>): Promise<T> {
    calls.push(operation)
    for (const look of waiting) look()
    const interceptor = interceptors.get(operation)
    return interceptor === undefined ? go() : interceptor(go)
  }

  return {
    calls,
    intercept(operation, interceptor) {
      if (interceptor === undefined) interceptors.delete(operation)
      else interceptors.set(operation, interceptor)
    },
    called(operation, count = 1) {
      return new Promise((resolve) => {
        const look = (): void => {
          if (calls.filter((one) => one === operation).length < count) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
        look()
      })
    },
    store: {
      name: inner.name,
      claim: (entries) => call('claim', () => inner.claim(entries)),
      renew: (hold, leaseMs) => call('renew', () => inner.renew(hold, leaseMs)),
      complete: (hold, options, tx) => call('complete', () => inner.complete(hold, options, tx)),
      fail: (hold, options, tx) => call('fail', () => inner.fail(hold, options, tx)),
      release: (hold) => call('release', () => inner.release(hold)),
      abandon: (key, token) => call('abandon', () => inner.abandon(key, token)),
      take: (options) => call('take', () => inner.take(options)),
      get: (key) => call('get', () => inner.get(key)),
      list: (query) => call('list', () => inner.list(query)),
      stats: () => call('stats', () => inner.stats()),
      latest: (entry, tx) => call('latest', () => inner.latest(entry, tx)),
      ...(inner.watch === undefined ? {} : { watch: inner.watch }),
      retry: (key) => call('retry', () => inner.retry(key)),
      purge: (limit) => call('purge', () => inner.purge(limit)),
      setup: () => call('setup', () => inner.setup()),
      close: () => call('close', () => inner.close()),
    },
  }
}

/** A door that is closed until it is opened. */
export interface Gate {
  readonly opened: Promise<undefined>
  open(): void
}

export function createGate(): Gate {
  let open = (): void => {}
  const opened = new Promise<undefined>((resolve) => {
    open = () => resolve(undefined)
  })
  return { opened, open: () => open() }
}
