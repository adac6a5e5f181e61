import { createInbox, createWorker, memoryStore, type StoredPayload } from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { keyOf, queueOn } from './worker-support.ts'

const k1 = new Uint8Array(32).fill(1)
const k2 = Buffer.alloc(32, 2).toString('base64')

function inboxWith(
  store: ReturnType<typeof memoryStore>,
  keys?: Readonly<Record<string, Uint8Array | string>>,
  current = 'k1',
) {
  return createInbox({
    store,
    onError: () => {},
    ...(keys === undefined ? {} : { encryption: { keys, current } }),
  })
}

/** What a taker would get of everything that waits; then it is given back. */
async function stored(store: ReturnType<typeof memoryStore>): Promise<readonly StoredPayload[]> {
  const taken = await store.take({ limit: 100, leaseMs: 1000, deadRetentionMs: 1000 })
  for (const { hold } of taken) await store.release(hold)
  return taken.map(({ payload }) => payload)
}

describe('sealed bytes', () => {
  it('tell nothing in the store, and come back exactly', async () => {
    const store = memoryStore()
    const inbox = inboxWith(store, { k1 })
    await queueOn(inbox).send('d', { payload: { card: '4242 4242' } })
    const [payload] = await stored(store)
    expect(payload?.headers).toEqual({ ':sealed': 'k1' })
    const text = Buffer.from(payload?.body ?? []).toString('latin1')
    expect(text).not.toContain('4242')
    expect(text).not.toContain('github')
    const seen: unknown[] = []
    await createWorker({
      inbox,
      handler: ({ id, event, headers, rawBody, payload: found }) =>
        void seen.push([id, event, headers['content-type'], String(Buffer.from(rawBody)), found]),
    }).drain()
    expect(seen).toEqual([
      ['d', 'push', 'application/json', '{"card":"4242 4242"}', { card: '4242 4242' }],
    ])
  })

  it('are different every time, also of the same delivery', async () => {
    const bodies = new Set<string>()
    for (let round = 0; round < 3; round++) {
      const store = memoryStore()
      await queueOn(inboxWith(store, { k1 })).send('d')
      for (const { body } of await stored(store)) bodies.add(Buffer.from(body).toString('hex'))
    }
    expect(bodies.size).toBe(3)
  })

  it('of an older key open while both are there, and bytes of before without any', async () => {
    const store = memoryStore()
    await queueOn(inboxWith(store)).send('plain')
    await queueOn(inboxWith(store, { k1 })).send('older')
    const rotated = inboxWith(store, { k1, k2 }, 'k2')
    await queueOn(rotated).send('newer')
    expect((await stored(store)).map(({ headers }) => headers[':sealed'])).toEqual([
      undefined,
      'k1',
      'k2',
    ])
    const ran: string[] = []
    await createWorker({ inbox: rotated, handler: ({ id }) => void ran.push(id) }).drain()
    expect(ran.toSorted()).toEqual(['newer', 'older', 'plain'])
  })

  it.each([
    ['without a key', undefined, 'k1', 'seal_key_missing'],
    ['without that key', { k2 }, 'k2', 'seal_key_missing'],
    ['with a wrong key', { k1: k2 }, 'k1', 'seal_broken'],
  ] as const)(
    '%s are a dead letter, which the right key brings back',
    async (_, keys, current, code) => {
      const store = memoryStore()
      await queueOn(inboxWith(store, { k1 })).send('d')
      const ran: string[] = []
      const handler = ({ id }: { readonly id: string }) => void ran.push(id)
      const blind = inboxWith(store, keys, current)
      await createWorker({ inbox: blind, handler }).drain()
      expect(await blind.get(keyOf('d'))).toMatchObject({ state: 'dead', code, hasPayload: true })
      expect(ran).toEqual([])
      expect(await blind.retry(keyOf('d'))).toBe('pending')
      await createWorker({ inbox: inboxWith(store, { k1 }), handler }).drain()
      expect(ran).toEqual(['d'])
    },
  )

  it('that were changed, or moved to another record, do not open', async () => {
    const store = memoryStore()
    const inbox = inboxWith(store, { k1 })
    await queueOn(inbox).send('d')
    const [payload] = await stored(store)
    if (payload === undefined) throw new Error('Nothing is stored.')
    const put = (deliveryId: string, body: Uint8Array) =>
      store.claim([
        {
          key: keyOf(deliveryId),
          token: 't',
          leaseMs: 1000,
          mode: 'queued',
          payload: { body, headers: payload.headers },
          unfinishedRetentionMs: 1000,
        },
      ])
    await put('moved', payload.body)
    for (let at = 0; at < payload.body.length; at++) {
      const body = payload.body.slice()
      body[at] = (body[at] ?? 0) ^ 1
      await put(`changed-${at}`, body)
    }
    await put('empty', new Uint8Array())
    await put('short', payload.body.slice(0, 9))
    const ran: string[] = []
    await createWorker({ inbox, handler: ({ id }) => void ran.push(id) }).drain()
    expect(ran).toEqual(['d'])
    const { records } = await inbox.list({ state: 'dead', limit: 1000 })
    expect(new Set(records.map((record) => record.code))).toEqual(new Set(['seal_broken']))
    expect(records).toHaveLength(payload.body.length + 3)
  })

  it('are kept after completion as long as retention.payloadMs says', async () => {
    let nowMs = 1_700_000_000_000
    const store = memoryStore({ now: () => nowMs })
    const inbox = createInbox({ store, retention: { payloadMs: 5000 } })
    await queueOn(inbox).send('d')
    await createWorker({ inbox, handler: () => {} }).drain()
    expect(await inbox.get(keyOf('d'))).toMatchObject({ state: 'completed', hasPayload: true })
    nowMs += 5000
    await inbox.purge()
    expect(await inbox.get(keyOf('d'))).toMatchObject({ state: 'completed', hasPayload: false })
  })

  it.each([
    [{}, /"encryption.keys" must be an object/],
    [{ keys: {}, current: 'a' }, /"encryption.current" must be the id of one/],
    [{ keys: { a: k1 }, current: 'b' }, /"encryption.current" must be the id of one/],
    [{ keys: { a: 'short' }, current: 'a' }, /openssl rand -base64 32/],
    [{ keys: { a: new Uint8Array(16) }, current: 'a' }, /the one of "a" is none/],
    [{ keys: { a: k1 }, current: 'a', key: 1 }, /unknown option "key"/],
  ])('need keys that are some: %o', (encryption, message) => {
    const options = { store: memoryStore(), encryption }
    expect(() => Reflect.apply(createInbox, undefined, [options])).toThrow(message)
  })
})
