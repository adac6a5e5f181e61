/** Several events in one request, on the durable stores: two instances of each, as two processes would open them. */
import {
  type ClaimedDelivery,
  createInbox,
  createReceiver,
  createWorker,
  type Inbox,
  PermanentError,
  type Receipt,
} from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kinds, type Target, targets } from '../queue/places.ts'
import { openPlace, type Place } from '../queue/stores.ts'
import { credentialsOf, entryOf } from './keys.ts'

const entry = entryOf('sendgrid')
const { secret = '', privateKey = '' } = credentialsOf(entry)

async function requestOf(ids: readonly string[]) {
  const payload = ids.map((id) => ({ sg_event_id: id, event: 'open' }))
  const { headers, body } = await signRequest('sendgrid', { privateKey, event: 'batch', payload })
  return { method: 'POST', url: '/', headers, body: new TextEncoder().encode(body) }
}

const ids = Array.from({ length: 30 }, (_, index) => `e${index}`)

describe.each(kinds)('on %s', (kind) => {
  let target: Target
  beforeAll(async () => {
    target = await targets[kind]()
  })
  afterAll(() => target.stop())

  async function twoPlaces(): Promise<{ readonly places: Place[]; readonly inboxes: Inbox[] }> {
    const address = await target.newAddress()
    const places = [await openPlace(kind, address), await openPlace(kind, address)]
    const inboxes = places.map(({ store }) =>
      createInbox({ store, retry: { minMs: 1, maxMs: 20 }, storeTimeoutMs: 10_000 }),
    )
    return { places, inboxes }
  }

  const countRuns = (runs: Map<string, number>, { items = [] }: ClaimedDelivery): void => {
    for (const { id } of items) runs.set(id, (runs.get(id) ?? 0) + 1)
  }

  it('each runs once, however the sender regroups and repeats them', async () => {
    const { places, inboxes } = await twoPlaces()
    const runs = new Map<string, number>()
    const receivers = inboxes.map((inbox) =>
      createReceiver({
        provider: 'sendgrid',
        secret,
        inbox,
        handler: async (webhook) => {
          await new Promise((resolve) => setTimeout(resolve, 2))
          countRuns(runs, webhook)
        },
      }),
    )
    const send = async (group: readonly string[], at: number): Promise<Receipt | undefined> =>
      receivers[at % 2]?.receive(await requestOf(group), undefined)
    const groups = Array.from({ length: 24 }, (_, start) =>
      ids.filter((_id, index) => (index * 7 + start) % 4 !== 0),
    )
    await Promise.all(groups.map(send))
    await expect
      .poll(async () => (await Promise.all([send(ids, 0), send(ids, 1)])).map((one) => one?.status))
      .toEqual(['completed', 'completed'])
    expect([...runs.keys()].sort()).toEqual([...ids].sort())
    expect([...runs.values()].every((count) => count === 1)).toBe(true)
    for (const place of places) await place.close()
  })

  it('each runs once in workers, out of requests that are stored once', async () => {
    const { places, inboxes } = await twoPlaces()
    const [inbox] = inboxes
    if (inbox === undefined) throw new Error('no inbox')
    const receiver = createReceiver({ provider: 'sendgrid', secret, inbox, queue: true })
    const groups = Array.from({ length: 8 }, (_, start) =>
      ids.filter((_id, index) => (index + start) % 3 !== 0),
    )
    for (const group of groups) {
      const receipt = await receiver.receive(await requestOf(group), undefined)
      expect(receipt.status).toBe('pending')
    }
    const runs = new Map<string, number>()
    const fails = new Set(['e3', 'e4'])
    const workers = inboxes.map((own) =>
      createWorker({
        inbox: own,
        pollMs: 20,
        onError: () => {},
        handler: async (webhook) => {
          for (const item of webhook.items ?? []) {
            if (fails.delete(item.id)) await item.fail(new Error('not yet'))
            else runs.set(item.id, (runs.get(item.id) ?? 0) + 1)
          }
        },
      }),
    )
    for (const worker of workers) worker.start()
    await expect
      .poll(async () => {
        const { states } = await inbox.stats()
        return states.pending + states.processing + states.failed
      })
      .toBe(0)
    await Promise.all(workers.map((worker) => worker.stop()))
    expect([...runs.keys()].sort()).toEqual([...ids].sort())
    expect([...runs.values()].every((count) => count === 1)).toBe(true)
    for (const place of places) await place.close()
  })

  it('a stored request that is dead runs again as a whole, and one that is given up alone by itself', async () => {
    const { places, inboxes } = await twoPlaces()
    const [inbox] = inboxes
    if (inbox === undefined) throw new Error('no inbox')
    const receiver = createReceiver({ provider: 'sendgrid', secret, inbox, queue: true })
    const seen: string[][] = []
    let say: 'throw' | 'give up' | 'done' = 'throw'
    const worker = createWorker({
      inbox,
      onError: () => {},
      handler: async ({ items = [] }) => {
        seen.push(items.map(({ id }) => id))
        if (say === 'throw') throw new PermanentError('a fault of ours')
        if (say === 'give up') await items[1]?.fail(new Error('bad'), { retryable: false })
      },
    })
    const dead = async (): Promise<number> => (await inbox.stats()).states.dead
    await receiver.receive(await requestOf(['a', 'b', 'c']), undefined)
    await worker.drain()
    expect(await dead()).toBe(1)
    say = 'give up'
    expect(await inbox.retryAll()).toMatchObject({ pending: 1, needs_redelivery: 0 })
    await worker.drain()
    expect(await dead()).toBe(1)
    say = 'done'
    expect(await inbox.retryAll()).toMatchObject({ pending: 1, needs_redelivery: 0 })
    await worker.drain()
    expect(seen).toEqual([['a', 'b', 'c'], ['a', 'b', 'c'], ['b']])
    const { states } = await inbox.stats()
    expect(states).toMatchObject({ pending: 0, processing: 0, failed: 0, dead: 0 })
    await worker.stop()
    for (const place of places) await place.close()
  })

  it('all complete with the transaction of the handler, or none', async () => {
    const { places, inboxes } = await twoPlaces()
    const [place] = places
    const [inbox] = inboxes
    if (place === undefined || inbox === undefined) throw new Error('no place')
    let isBroken = true
    const receiver = createReceiver({
      provider: 'sendgrid',
      secret,
      inbox,
      onError: () => {},
      handler: (webhook) =>
        place.effectAndComplete(webhook, () => {
          if (isBroken) throw new Error('before the commit')
        }),
    })
    const request = await requestOf(['a', 'b', 'c'])
    expect((await receiver.receive(request, undefined)).status).toBe('failed')
    isBroken = false
    expect((await receiver.receive(request, undefined)).status).toBe('completed')
    for (const deliveryId of ['a', 'b', 'c']) {
      const record = await place.store.get({ provider: 'sendgrid', endpoint: '', deliveryId })
      // Redis forgets nothing of a completed record but its list of attempts.
      expect(record?.state).toBe('completed')
    }
    expect((await receiver.receive(request, undefined)).status).toBe('completed')
    for (const one of places) await one.close()
  })
})
