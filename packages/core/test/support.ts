import { createHmac } from 'node:crypto'
import type { Observer, ObserverEvent, Store } from '@webhook-inbox/core'

export const secret = "It's a Secret to Everybody"

/** A signed GitHub request in plain values. */
export function signed(
  body: string | Uint8Array,
  headers: Readonly<Record<string, string>> = {},
  key: string = secret,
): { method: string; url: string; headers: Record<string, string>; body: Uint8Array } {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  return {
    method: 'POST',
    url: '/webhooks/github',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'x-github-hook-id': '292430182',
      'x-hub-signature-256': `sha256=${createHmac('sha256', key).update(bytes).digest('hex')}`,
      ...headers,
    },
    body: bytes,
  }
}

/** A gate that a test opens by hand. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

/** An observer that keeps what it heard and can wait for an event. */
export function recorder(): {
  readonly events: ObserverEvent[]
  readonly observer: Observer
  heard(type: ObserverEvent['type']): Promise<ObserverEvent>
} {
  const events: ObserverEvent[] = []
  const waiting: { type: string; resolve: (event: ObserverEvent) => void }[] = []
  return {
    events,
    observer(event) {
      events.push(event)
      for (const waiter of waiting) if (waiter.type === event.type) waiter.resolve(event)
    },
    heard(type) {
      const found = events.find((event) => event.type === type)
      if (found !== undefined) return Promise.resolve(found)
      return new Promise((resolve) => waiting.push({ type, resolve }))
    },
  }
}

/** The store with some operations replaced: to hold, break or count them. */
export function withOperations(store: Store, operations: Partial<Store>): Store {
  return { ...store, ...operations }
}
