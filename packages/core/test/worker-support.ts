import {
  createInbox,
  createReceiver,
  type DeliveryKey,
  type EndpointOptions,
  type Inbox,
  type InboxOptions,
  memoryStore,
  type Receipt,
  type Store,
} from '@webhook-inbox/core'
import { recorder, secret, signed } from './support.ts'

/** The key of a delivery that {@link queueOn} stored. */
export function keyOf(deliveryId: string): DeliveryKey {
  return { provider: 'github', endpoint: '1', deliveryId }
}

/** What a delivery carries. */
export interface Sent {
  readonly event?: string
  readonly payload?: unknown
}

/** A queue on a memory store whose time stands still until a test moves it. */
export function createQueue({
  wrap = (store) => store,
  endpoint = {},
  ...options
}: {
  /** Puts another store around the one in memory. */
  readonly wrap?: (store: Store) => Store
  readonly endpoint?: Partial<EndpointOptions>
} & Omit<InboxOptions, 'store' | 'observer' | 'onError'> = {}) {
  const clock = { nowMs: 1_700_000_000_000 }
  const inner = memoryStore({ now: () => clock.nowMs })
  const errors: unknown[] = []
  const watcher = recorder()
  const inbox = createInbox({
    store: wrap(inner),
    observer: watcher.observer,
    onError: (error) => errors.push(error),
    ...options,
  })
  return { ...queueOn(inbox, endpoint), ...watcher, clock, inner, inbox, errors }
}

/** A queued endpoint on an inbox. */
export function queueOn(inbox: Inbox, endpoint: Partial<EndpointOptions> = {}) {
  const receiver = createReceiver({
    provider: 'github',
    secret,
    queue: true,
    endpoint: '1',
    inbox,
    ...endpoint,
  })
  function send(id: string, { event = 'push', payload = {} }: Sent = {}): Promise<Receipt> {
    const names = { 'x-github-delivery': id, 'x-github-event': event }
    return receiver.receive(signed(JSON.stringify(payload), names), undefined)
  }
  return {
    send,
    async sendAll(count: number): Promise<string[]> {
      const ids = Array.from({ length: count }, (_, index) => `d-${index}`)
      for (const id of ids) await send(id)
      return ids
    },
    stateOf: async (id: string) => (await inbox.get(keyOf(id)))?.state,
    recordOf: (id: string) => inbox.get(keyOf(id)),
  }
}

/** Lets everything run that needs no time. */
export async function turns(count = 5): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate)
}
