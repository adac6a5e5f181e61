import {
  type ClaimedDelivery,
  createInbox,
  createReceiver,
  createWorker,
  memoryStore,
  type ObserverEvent,
  PermanentError,
  type ProviderName,
  type Receipt,
  type Store,
} from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { credentialsOf, entryOf } from './keys.ts'

const sendgrid = entryOf('sendgrid')
const { secret = '', privateKey = '' } = credentialsOf(sendgrid)

const events = (...ids: readonly string[]) =>
  ids.map((id) => ({
    sg_event_id: id,
    event: id.startsWith('o') ? 'open' : 'delivered',
    email: id,
  }))

async function requestOf(payload: unknown) {
  const { headers, body } = await signRequest('sendgrid', {
    privateKey,
    event: 'batch',
    // Bytes as they are: a payload would be given the ids that it lacks.
    body: JSON.stringify(payload),
  })
  return { method: 'POST', url: '/', headers, body: new TextEncoder().encode(body) }
}

function site(
  handler: (webhook: ClaimedDelivery) => unknown,
  options: { readonly store?: Store; readonly events?: readonly string[] } = {},
) {
  const seen: string[][] = []
  const observed: ObserverEvent[] = []
  const errors: unknown[] = []
  const { store = memoryStore(), ...rest } = options
  const receiver = createReceiver({
    provider: 'sendgrid',
    secret,
    store,
    observer: (event) => void observed.push(event),
    onError: (error) => void errors.push(error),
    handler: async (webhook) => {
      seen.push((webhook.items ?? []).map(({ id }) => id))
      await handler(webhook)
    },
    ...rest,
  })
  const send = async (payload: unknown): Promise<Receipt> =>
    receiver.receive(await requestOf(payload), undefined)
  return { send, seen, store, receiver, observed, errors }
}

const statusOf = (receipt: Receipt): number =>
  receipt.status === 'claimed' ? 0 : receipt.answer.status

describe('several events in one request', () => {
  it('are claimed one by one: the handler sees those that are new', async () => {
    const { send, seen, store } = site(() => {})
    expect(statusOf(await send(events('a', 'b')))).toBe(200)
    expect(statusOf(await send(events('b', 'c')))).toBe(200)
    expect(statusOf(await send(events('a', 'b', 'c')))).toBe(200)
    expect(seen).toEqual([['a', 'b'], ['c']])
    expect(await store.get({ provider: 'sendgrid', endpoint: '', deliveryId: 'b' })).toMatchObject({
      state: 'completed',
      event: 'delivered',
      attempt: 1,
    })
  })

  it('give the handler their payload, and an event that stands there twice once', async () => {
    let items: ClaimedDelivery['items']
    const { send } = site((webhook) => {
      items = webhook.items
      expect(webhook.event).toBe('batch')
      expect(webhook.payload).toHaveLength(3)
    })
    await send(events('a', 'o1', 'a'))
    expect(items).toMatchObject([
      { id: 'a', event: 'delivered', payload: { email: 'a' }, attempt: 1 },
      { id: 'o1', event: 'open', payload: { email: 'o1' } },
    ])
  })

  it('that failed run again alone', async () => {
    let isBroken = true
    const { send, seen, errors } = site(async ({ items = [] }) => {
      for (const item of items) {
        if (item.id === 'b' && isBroken) await item.fail(new Error('b is broken'))
        else await item.complete()
      }
    })
    const partly = await send(events('a', 'b', 'c'))
    expect(statusOf(partly)).toBe(503)
    expect(partly).toMatchObject({ answer: { headers: { 'retry-after': '1' } } })
    expect(errors).toMatchObject([{ message: 'b is broken' }])
    isBroken = false
    expect(statusOf(await send(events('a', 'b', 'c')))).toBe(200)
    expect(seen).toEqual([['a', 'b', 'c'], ['b']])
  })

  it('that were settled one by one before the handler threw are done', async () => {
    let isBroken = true
    const { send, seen } = site(async ({ items = [] }) => {
      for (const item of items) {
        if (item.id === 'b' && isBroken) throw new Error('b is broken')
        await item.complete()
      }
    })
    expect(statusOf(await send(events('a', 'b', 'c')))).toBe(500)
    isBroken = false
    expect(statusOf(await send(events('a', 'b', 'c')))).toBe(200)
    expect(seen).toEqual([
      ['a', 'b', 'c'],
      ['b', 'c'],
    ])
  })

  it('that can never be processed are dead, and the others go on', async () => {
    const { send, seen, store } = site(async ({ items = [] }) => {
      for (const item of items)
        if (item.id === 'b') await item.fail(undefined, { retryable: false })
    })
    expect(statusOf(await send(events('a', 'b')))).toBe(200)
    expect(statusOf(await send(events('a', 'b')))).toBe(200)
    expect(seen).toEqual([['a', 'b']])
    expect(await store.get({ provider: 'sendgrid', endpoint: '', deliveryId: 'b' })).toMatchObject({
      state: 'dead',
    })
  })

  it('are all dead after a PermanentError', async () => {
    const { send, seen } = site(() => {
      throw new PermanentError('never')
    })
    expect(statusOf(await send(events('a', 'b')))).toBe(422)
    expect(statusOf(await send(events('a', 'b')))).toBe(200)
    expect(seen).toEqual([['a', 'b']])
  })

  it('that another request has in hand are asked for again', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const { send, seen } = site(async ({ items = [] }) => {
      if (items.some(({ id }) => id === 'a')) await held
    })
    const first = send(events('a', 'b'))
    await expect.poll(() => seen.length).toBe(1)
    // c is new and done; b is not: the sender has to come again.
    expect(statusOf(await send(events('b', 'c')))).toBe(503)
    expect(statusOf(await send(events('b')))).toBe(503)
    release()
    expect(statusOf(await first)).toBe(200)
    expect(statusOf(await send(events('a', 'b', 'c')))).toBe(200)
    expect(seen).toEqual([['a', 'b'], ['c']])
  })

  it('run exactly once in any number of simultaneous regroupings', async () => {
    const { send, seen } = site(async () => {
      await new Promise((resolve) => setTimeout(resolve, 5))
    })
    const ids = Array.from({ length: 20 }, (_, index) => `e${index}`)
    const groups = Array.from({ length: 30 }, (_, start) =>
      events(...ids.filter((_id, index) => (index + start) % 3 !== 0)),
    )
    await Promise.all(groups.map((group) => send(group)))
    // What was busy is asked for again, as a sender does.
    await expect.poll(async () => statusOf(await send(events(...ids))), { interval: 5 }).toBe(200)
    expect(seen.flat().sort()).toEqual([...ids].sort())
  })

  it('that are not wanted are left out', async () => {
    const { send, seen } = site(() => {}, { events: ['open'] })
    expect(await send(events('a', 'o1', 'b', 'o2'))).toMatchObject({ status: 'completed' })
    expect(await send(events('a', 'b'))).toMatchObject({ status: 'ignored' })
    expect(seen).toEqual([['o1', 'o2']])
  })

  it('an empty list only tests the connection', async () => {
    const { send, seen } = site(() => {})
    const receipt = await send([])
    expect(receipt).toMatchObject({ status: 'ping', answer: { status: 200 } })
    expect(seen).toEqual([])
  })

  it('a body that is no list is one delivery', async () => {
    const webhooks: ClaimedDelivery[] = []
    const { send } = site((webhook) => void webhooks.push(webhook))
    expect(statusOf(await send({ event: 'delivered', sg_event_id: 'a' }))).toBe(200)
    expect(statusOf(await send({ event: 'delivered', sg_event_id: 'a' }))).toBe(200)
    expect(webhooks).toHaveLength(1)
    expect(webhooks[0]?.items).toBeUndefined()
  })

  it('an event without an id is known by what it holds', async () => {
    const { send, seen } = site(() => {})
    const unnamed = [{ event: 'open', at: 1 }, { event: 'open', at: 2 }, 'text', null]
    await send(unnamed)
    await send(unnamed)
    expect(seen).toHaveLength(1)
    expect(seen[0]).toHaveLength(4)
    for (const id of seen[0] ?? []) expect(id).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  it('nothing is run when the store fails for one of them, and what was claimed is given back', async () => {
    const inner = memoryStore()
    let isBroken = true
    const store: Store = {
      ...inner,
      claim: async (entries) => {
        if (isBroken && entries.some(({ key }) => key.deliveryId === 'b'))
          throw Object.assign(new Error('no'), { code: 'ERR_STORE_UNAVAILABLE' })
        return inner.claim(entries)
      },
    }
    const { send, seen } = site(() => {}, { store })
    expect(statusOf(await send(events('a', 'b', 'c')))).toBe(503)
    expect(seen).toEqual([])
    isBroken = false
    await expect.poll(async () => statusOf(await send(events('a', 'b', 'c')))).toBe(200)
    expect(seen.flat().sort()).toEqual(['a', 'b', 'c'])
  })
})

describe('a store that does not answer in time', () => {
  it('does not turn the failure of one event into a success of all', async () => {
    const inner = memoryStore()
    let isBroken = true
    const store: Store = {
      ...inner,
      complete: async (...args) => {
        if (isBroken) throw new Error('the store is gone')
        return inner.complete(...args)
      },
    }
    const { send, seen } = site(
      async ({ items = [] }) => {
        if (seen.length === 1) await items.find(({ id }) => id === 'b')?.fail(new Error('not yet'))
      },
      { store },
    )
    expect(statusOf(await send(events('a', 'b')))).toBe(503)
    isBroken = false
    await expect.poll(async () => statusOf(await send(events('a', 'b')))).toBe(200)
    expect(seen).toEqual([['a', 'b'], ['b']])
  })
})

describe('several events in one request that is stored first', () => {
  async function queue() {
    const inbox = createInbox({ store: memoryStore(), retry: { minMs: 1, maxMs: 1 } })
    const receiver = createReceiver({ provider: 'sendgrid', secret, inbox, queue: true })
    const send = async (payload: unknown): Promise<Receipt> =>
      receiver.receive(await requestOf(payload), undefined)
    return { inbox, send }
  }

  it('are stored once, and the worker sees those that are new', async () => {
    const { inbox, send } = await queue()
    expect(statusOf(await send(events('a', 'b')))).toBe(202)
    expect(statusOf(await send(events('b', 'c')))).toBe(202)
    expect((await inbox.stats()).states.pending).toBe(2)
    const seen: string[][] = []
    const worker = createWorker({
      inbox,
      concurrency: 1,
      handler: ({ items = [] }) => void seen.push(items.map(({ id }) => id)),
    })
    await worker.drain()
    expect(seen).toEqual([['a', 'b'], ['c']])
    expect(statusOf(await send(events('a', 'b')))).toBe(200)
    await worker.drain()
    expect(seen).toHaveLength(2)
    expect((await inbox.stats()).states).toMatchObject({ pending: 0, processing: 0, failed: 0 })
  })

  it('that failed run again alone, until the delivery is done', async () => {
    const { inbox, send } = await queue()
    await send(events('a', 'b', 'c'))
    const seen: string[][] = []
    const worker = createWorker({
      inbox,
      onError: () => {},
      handler: async ({ items = [], attempt }) => {
        seen.push(items.map(({ id }) => id))
        for (const item of items) {
          if (item.id === 'b' && attempt === 1) await item.fail(new Error('not yet'))
          if (item.id === 'c' && attempt < 3) throw new Error('stop')
        }
      },
    })
    await worker.drain()
    await expect
      .poll(async () => {
        await worker.drain()
        return (await inbox.stats()).states.failed
      })
      .toBe(0)
    // a was not settled when the handler threw, so it comes again with the others.
    expect(seen).toEqual([
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
      ['a', 'b', 'c'],
    ])
    for (const deliveryId of ['a', 'b', 'c']) {
      const record = await inbox.get({ provider: 'sendgrid', endpoint: '', deliveryId })
      expect(record).toMatchObject({ state: 'completed' })
    }
  })
})

describe('the lists of other senders', () => {
  const cases: readonly (readonly [
    ProviderName,
    unknown,
    readonly (readonly [string, string])[],
  ])[] = [
    [
      'hubspot',
      [
        {
          portalId: 1,
          subscriptionId: 2,
          eventId: 3,
          occurredAt: 4,
          subscriptionType: 'contact.creation',
        },
      ],
      [['1:2:3:4', 'contact.creation']],
    ],
    ['line', { events: [{ webhookEventId: '01H', type: 'message' }] }, [['01H', 'message']]],
    [
      'okta',
      { eventId: 'x', data: { events: [{ uuid: 'u1', eventType: 'user.session.start' }] } },
      [['u1', 'user.session.start']],
    ],
    [
      'adyen',
      {
        notificationItems: [
          {
            NotificationRequestItem: {
              pspReference: 'p',
              eventCode: 'AUTHORISATION',
              success: 'true',
            },
          },
        ],
      },
      [['p:AUTHORISATION:true', 'AUTHORISATION']],
    ],
    [
      'meta-whatsapp',
      {
        object: 'whatsapp_business_account',
        entry: [
          {
            id: '1',
            changes: [
              {
                field: 'messages',
                value: {
                  metadata: { phone_number_id: '9' },
                  messages: [{ id: 'wamid.1' }, { id: 'wamid.2' }],
                  statuses: [{ id: 'wamid.0', status: 'read' }],
                },
              },
              { field: 'account_update', value: { event: 'VERIFIED' } },
            ],
            messaging: [
              { message: { mid: 'm_1' } },
              { message: { mid: 'm_1', is_deleted: true } },
              { timestamp: 1, read: { watermark: 1 } },
            ],
            standby: [{ message: { mid: 'm_1' } }],
          },
          { id: '2', changes: [{ field: 'account_update', value: { event: 'VERIFIED' } }] },
          {
            id: '2',
            time: 7,
            changes: [
              { field: 'account_update', value: { event: 'VERIFIED' } },
              { field: 'standby', value: { messages: [{ id: 'wamid.1' }] } },
            ],
          },
          { id: '3', time: 7, changed_fields: ['photos'] },
        ],
      },
      [
        ['wamid.1', 'messages'],
        ['wamid.2', 'messages'],
        ['wamid.0:read', 'messages'],
        ['sha256', 'account_update'],
        ['m_1', 'messaging'],
        ['sha256', 'messaging'],
        ['sha256', 'messaging'],
        ['sha256', 'standby'],
        ['sha256', 'account_update'],
        ['sha256', 'account_update'],
        ['standby:wamid.1', 'standby'],
        ['sha256', 'entry'],
      ],
    ],
    [
      'xero',
      {
        events: [
          {
            tenantId: 't',
            resourceId: 'r',
            eventCategory: 'INVOICE',
            eventType: 'UPDATE',
            eventDateUtc: '2026-12-01T00:00:00',
          },
        ],
      },
      [['t:r:INVOICE:UPDATE:2026-12-01T00:00:00', 'INVOICE.UPDATE']],
    ],
    [
      'event-grid',
      [
        { id: '1', eventType: 'Microsoft.Storage.BlobCreated' },
        { id: '2', source: '/s', type: 'com.example' },
        { id: '2', topic: '/t', eventType: 'Microsoft.Storage.BlobCreated' },
      ],
      [
        ['1', 'Microsoft.Storage.BlobCreated'],
        ['/s#2', 'com.example'],
        ['/t#2', 'Microsoft.Storage.BlobCreated'],
      ],
    ],
    ['auth0-logs', [{ log_id: 'l1', data: { type: 's' } }], [['l1', 's']]],
    [
      'asana',
      { events: [{ action: 'changed', resource: { gid: '1', resource_type: 'task' } }] },
      [['sha256', 'task.changed']],
    ],
    ['tailscale', [{ type: 'nodeCreated' }], [['sha256', 'nodeCreated']]],
  ]

  it.each(cases)('%s', async (name, payload, expected) => {
    const entry = entryOf(name)
    const credentials = credentialsOf(entry)
    const url = 'https://hooks.example.test/in'
    const { headers, body } = await signRequest(name, {
      ...(credentials.secret === undefined ? {} : { secret: credentials.secret }),
      event: 'batch',
      payload,
      url,
    })
    let items: ClaimedDelivery['items']
    const receiver = createReceiver({
      provider: name,
      secret: credentials.secret ?? '',
      publicUrl: url,
      store: memoryStore(),
      handler: (webhook) => {
        items = webhook.items
      },
    })
    const receipt = await receiver.receive(
      { method: 'POST', url: '/in', headers, body: new TextEncoder().encode(body) },
      undefined,
    )
    expect(receipt.status).toBe('completed')
    expect(
      items?.map(({ id, event }) => [id.startsWith('sha256:') ? 'sha256' : id, event]),
    ).toEqual(expected)
  })
})
