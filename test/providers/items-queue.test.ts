/** Several events in one request that is stored first: dead letters, other runs, a process that stops. */
import {
  type ClaimedDelivery,
  createInbox,
  createReceiver,
  createWorker,
  defineProvider,
  type InboxOptions,
  memoryStore,
  PermanentError,
  type Provider,
  type ProviderName,
  type Receipt,
  type Store,
} from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { acme, hmac } from './support.ts'

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const statusOf = (receipt: Receipt): number =>
  receipt.status === 'claimed' ? 0 : receipt.answer.status

interface Options {
  readonly provider?: ProviderName | Provider
  readonly secret?: string
  readonly inbox?: Partial<Pick<InboxOptions, 'retry' | 'leaseMs' | 'maxRunMs'>>
  readonly endpoint?: { readonly redeliverDead?: boolean; readonly events?: readonly string[] }
  readonly store?: Store
}

function queue(handler: (webhook: ClaimedDelivery) => unknown, options: Options = {}) {
  const { provider = 'line', secret = 'l', store = memoryStore(), endpoint } = options
  const inbox = createInbox({
    store,
    retry: { minMs: 1, maxMs: 2 },
    onError: () => {},
    ...options.inbox,
  })
  const receiver = createReceiver({ provider, secret, inbox, queue: true, ...endpoint })
  const seen: (readonly string[])[] = []
  const worker = createWorker({
    inbox,
    ...(typeof provider === 'string' ? {} : { providers: [provider] }),
    handler: (webhook) => {
      seen.push(webhook.items?.map(({ id }) => id) ?? [`no items of ${webhook.id}`])
      return handler(webhook)
    },
  })
  const send = async (
    headers: Readonly<Record<string, string>>,
    body: string,
    url = '/',
  ): Promise<Receipt> =>
    receiver.receive(
      { method: 'POST', url, headers, body: new TextEncoder().encode(body) },
      undefined,
    )
  const states = async (): Promise<Readonly<Record<string, string>>> => {
    const { records } = await inbox.list()
    return Object.fromEntries(
      records.map(({ key, state }) => [key.deliveryId.replace(/:sha256:.*/, ''), state]),
    )
  }
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) {
      await worker.drain()
      await sleep(5)
    }
  }
  return { inbox, worker, seen, send, states, settle, store }
}

function line(...ids: readonly string[]): readonly [Record<string, string>, string] {
  const events = ids.map((id) => ({
    webhookEventId: id,
    type: id.startsWith('f') ? 'follow' : 'message',
  }))
  const body = JSON.stringify({ events })
  return [{ 'x-line-signature': hmac('l', body, 'base64') }, body]
}

describe('a stored request of several events that is dead', () => {
  it('is one dead letter, which an operator can run again', async () => {
    let broken = true
    const { inbox, worker, seen, send, states } = queue(() => {
      if (broken) throw new PermanentError('a fault of ours')
    })
    await send(...line('m1', 'm2'))
    await worker.drain()
    expect(await states()).toEqual({ batch: 'dead', m1: 'failed', m2: 'failed' })
    broken = false
    expect(await inbox.retryAll()).toMatchObject({ pending: 1, needs_redelivery: 0 })
    await worker.drain()
    expect(seen).toEqual([
      ['m1', 'm2'],
      ['m1', 'm2'],
    ])
    expect(await states()).toEqual({ batch: 'completed', m1: 'completed', m2: 'completed' })
  })

  it('after the last attempt, too, whatever its events have been through', async () => {
    let broken = true
    const { inbox, seen, send, states, settle } = queue(
      async ({ items = [] }) => {
        await items[0]?.complete()
        if (broken) throw new Error('down')
      },
      { inbox: { retry: { maxAttempts: 2, minMs: 1, maxMs: 1 } } },
    )
    await send(...line('m1', 'm2', 'm3'))
    await settle()
    expect(await states()).toMatchObject({ batch: 'dead', m1: 'completed', m3: 'failed' })
    broken = false
    await inbox.retryAll()
    await settle()
    expect(seen).toEqual([['m1', 'm2', 'm3'], ['m2', 'm3'], ['m3']])
    expect(Object.values(await states())).toEqual(Array(4).fill('completed'))
  })

  it('runs again when it is sent again, where the endpoint says so', async () => {
    let broken = true
    const handler = (): void => {
      if (broken) throw new PermanentError('a fault of ours')
    }
    const { worker, seen, send, states } = queue(handler, { endpoint: { redeliverDead: true } })
    await send(...line('m1'))
    await worker.drain()
    broken = false
    expect(statusOf(await send(...line('m1')))).toBe(202)
    await worker.drain()
    expect(seen).toEqual([['m1'], ['m1']])
    expect(await states()).toEqual({ batch: 'completed', m1: 'completed' })
  })

  it('an event that alone is dead keeps the bytes, and runs again alone', async () => {
    let broken = true
    const { inbox, worker, seen, send, states } = queue(async ({ items = [] }) => {
      for (const item of items)
        if (broken && item.id === 'm2') await item.fail(new Error('bad'), { retryable: false })
    })
    await send(...line('m1', 'm2', 'm3'))
    await worker.drain()
    expect(await states()).toEqual({
      batch: 'completed',
      m1: 'completed',
      m2: 'dead',
      m3: 'completed',
    })
    broken = false
    expect(await inbox.retryAll()).toMatchObject({ pending: 1 })
    await worker.drain()
    expect(seen).toEqual([['m1', 'm2', 'm3'], ['m2']])
    expect(Object.values(await states())).toEqual(Array(4).fill('completed'))
  })

  it('and such an event fails, is run again and dies by itself', async () => {
    const { inbox, seen, send, states, settle } = queue(
      async ({ items: [item] = [] }) =>
        item?.fail(new Error('bad'), { retryable: seen.length > 1 }),
      { inbox: { retry: { maxAttempts: 3, minMs: 1, maxMs: 1 } } },
    )
    await send(...line('m1'))
    await settle()
    expect(await states()).toEqual({ batch: 'completed', m1: 'dead' })
    await inbox.retryAll()
    await settle()
    expect(seen).toEqual([['m1'], ['m1'], ['m1'], ['m1']])
    expect(await states()).toEqual({ batch: 'completed', m1: 'dead' })
  })

  it('dead events of an endpoint without a queue that keeps their bytes run in a worker, one by one', async () => {
    const { inbox, seen, states, settle } = queue(() => {})
    const receiver = createReceiver({
      provider: 'line',
      secret: 'l',
      inbox,
      deadLetter: { keepBody: true },
      onError: () => {},
      handler: () => {
        throw new PermanentError('a fault of ours')
      },
    })
    const [headers, body] = line('m1', 'm2')
    const request = { method: 'POST', url: '/', headers, body: new TextEncoder().encode(body) }
    expect(statusOf(await receiver.receive(request, undefined))).toBe(422)
    expect(await states()).toEqual({ m1: 'dead', m2: 'dead' })
    expect(await inbox.retryAll()).toMatchObject({ pending: 2 })
    await settle()
    expect(seen.toSorted()).toEqual([['m1'], ['m2']])
    expect(await states()).toEqual({ m1: 'completed', m2: 'completed' })
  })
})

describe('what a stored request of several events is known by', () => {
  it('is no id that one of its events could have', async () => {
    const { seen, send, states, settle } = queue(() => {}, {
      provider: 'auth0-logs',
      secret: 'tok',
    })
    expect(statusOf(await send({ authorization: 'tok' }, '{"data":{"type":"s"}}'))).toBe(202)
    await settle()
    expect(seen).toHaveLength(1)
    expect(Object.values(await states())).toEqual(['completed', 'completed'])
  })

  it('is nothing that the sender has not signed', async () => {
    const hex = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056'
    const item = (psp: string) => ({
      NotificationRequestItem: {
        additionalData: {
          hmacSignature: hmac(
            Buffer.from(hex, 'hex'),
            `${psp}::M:r:1:EUR:AUTHORISATION:true`,
            'base64',
          ),
        },
        pspReference: psp,
        merchantAccountCode: 'M',
        merchantReference: 'r',
        amount: { value: 1, currency: 'EUR' },
        eventCode: 'AUTHORISATION',
        success: 'true',
      },
    })
    const { seen, send, worker } = queue(() => {}, { provider: 'adyen', secret: hex })
    const forged = { data: { id: 'Q:AUTHORISATION:true' }, notificationItems: [item('P')] }
    await send({}, JSON.stringify(forged))
    await worker.drain()
    await send({}, JSON.stringify({ notificationItems: [item('Q')] }))
    await worker.drain()
    expect(seen).toEqual([['P:AUTHORISATION:true'], ['Q:AUTHORISATION:true']])
  })

  it('is not asked of an address that is no longer known', async () => {
    const asked = defineProvider({
      ...acme,
      deliveryId: { query: 'id' },
      event: { query: 'event' },
      items: { list: 'list', id: { body: 'id' }, event: { value: 'x' } },
    })
    const { seen, send, worker } = queue(() => {}, { provider: asked, secret: 's' })
    const body = '{"list":[{"id":"a"},{"id":"b"}]}'
    await send({ 'acme-signature': hmac('s', body) }, body, '/?id=1&event=list')
    await worker.drain()
    expect(seen).toEqual([['a', 'b']])
  })
})

describe('the events of a stored request', () => {
  it('that the endpoint does not want are left out', async () => {
    const { seen, send, worker, states } = queue(
      ({ headers }) => expect(Object.keys(headers)).not.toContain('webhook-inbox-events'),
      { endpoint: { events: ['message'] } },
    )
    await send(...line('m1', 'f1', 'f2', 'm2'))
    await worker.drain()
    expect(seen).toEqual([['m1', 'm2']])
    expect(await states()).toEqual({ batch: 'completed', m1: 'completed', m2: 'completed' })
  })

  it('that another run has in hand are waited for, and cost no attempt', async () => {
    let free = (): void => {}
    const held = new Promise<void>((resolve) => {
      free = resolve
    })
    let runs = 0
    const { seen, send, worker, states } = queue(
      async () => {
        runs += 1
        if (runs === 1) {
          await held
          throw new Error('the first run fails')
        }
      },
      { inbox: { retry: { maxAttempts: 2, minMs: 1, maxMs: 1 } } },
    )
    worker.start()
    await send(...line('a', 'b'))
    await expect.poll(() => seen.length).toBe(1)
    await send(...line('b', 'c'))
    await expect.poll(() => seen.length).toBe(2)
    // Many backoffs long.
    await sleep(300)
    expect(seen).toEqual([['a', 'b'], ['c']])
    free()
    await expect
      .poll(async () => Object.values(await states()).every((state) => state === 'completed'))
      .toBe(true)
    expect(seen.slice(2).flat().sort()).toEqual(['a', 'b'])
    await worker.stop()
  })

  it('are given back with it when the process stops', async () => {
    const { store, send, worker, seen, states } = queue(() => new Promise(() => {}), {
      inbox: { leaseMs: 60_000 },
    })
    await send(...line('a', 'b'))
    worker.start()
    await expect.poll(() => seen.length).toBe(1)
    expect(await worker.stop({ timeoutMs: 1 })).toEqual({ running: 1 })
    expect(await states()).toMatchObject({ batch: 'pending' })
    const next = queue(() => {}, { store })
    await next.worker.drain()
    expect(next.seen).toEqual([['a', 'b']])
    const record = await next.inbox.get({ provider: 'line', endpoint: '', deliveryId: 'a' })
    expect(record).toMatchObject({ state: 'completed', attempt: 1 })
  })

  it('are what the handler says of them, although it does not await it', async () => {
    const inner = memoryStore()
    const store: Store = {
      ...inner,
      async fail(...args) {
        await sleep(20)
        return inner.fail(...args)
      },
    }
    const { seen, send, settle, states } = queue(
      ({ items = [], attempt }) => {
        if (attempt === 1) for (const item of items) void item.fail(new Error('broken'))
      },
      { store },
    )
    await send(...line('a', 'b'))
    await settle()
    expect(seen).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ])
    expect(Object.values(await states())).toEqual(Array(3).fill('completed'))
  })
})

describe('very many events in one request', () => {
  it('run, and nothing of them is left', async () => {
    const store = memoryStore()
    const seen: number[] = []
    const receiver = createReceiver({
      provider: 'line',
      secret: 'l',
      store,
      maxBodyBytes: 8 * 1024 * 1024,
      handler: ({ items = [] }) => void seen.push(items.length),
    })
    // More than a call takes arguments.
    const body = JSON.stringify({ events: Array.from({ length: 150_000 }, (_, index) => index) })
    const request = {
      method: 'POST',
      url: '/',
      headers: { 'x-line-signature': hmac('l', body, 'base64') },
      body: new TextEncoder().encode(body),
    }
    expect(statusOf(await receiver.receive(request, undefined))).toBe(200)
    expect(seen).toEqual([150_000])
    expect((await store.stats()).states).toMatchObject({ processing: 0, completed: 150_000 })
  })
})
