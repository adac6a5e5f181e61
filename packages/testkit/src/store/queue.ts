import type { StoredPayload } from '@webhook-inbox/core'
import { hex, keyOf, payloadOf, present, type StoreGuarantee } from './harness.ts'

function text({ body }: StoredPayload): string {
  return new TextDecoder().decode(body)
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}

const everyByte = Uint8Array.from({ length: 256 }, (_, byte) => byte)

/** Work that is stored first and run later. */
export const queueGuarantees = {
  async S33({ enqueue, record, take, expect }) {
    const first = await enqueue({ payload: payloadOf('"first"') })
    expect(first).toEqual({ status: 'pending', fresh: true, fingerprintMatches: true })
    const { state, attempt, hasPayload } = await record()
    expect({ state, attempt, hasPayload }).toEqual({
      state: 'pending',
      attempt: 0,
      hasPayload: true,
    })
    const copy = await enqueue({ payload: payloadOf('"first"') })
    expect(copy).toEqual({ status: 'pending', fresh: false, fingerprintMatches: true })
    expect((await take()).map(({ payload }) => text(payload))).toEqual(['"first"'])
  },

  async S34({ store, grant, enqueue, take, record, advance, tickMs, expect }) {
    const { hold } = await grant()
    expect((await record()).hasPayload).toEqual(false)
    const copy = await enqueue({ payload: payloadOf('"copy"') })
    if (copy.status !== 'processing') throw new Error(`The store answered "${copy.status}".`)
    expect(copy.leaseMs > 0 && copy.leaseMs <= 10 * tickMs).toEqual(true)
    expect((await record()).hasPayload).toEqual(true)
    expect((await take()).length).toEqual(0)
    expect(await store.renew(hold, 10 * tickMs)).toEqual('ok')
    await advance(11)
    const late = await enqueue()
    expect(late).toEqual({ status: 'pending', fresh: false, fingerprintMatches: true })
    const taken = await take()
    expect(taken.map(({ payload, attempt }) => [text(payload), attempt])).toEqual([['"copy"', 2]])
  },

  async S35({ store, grant, enqueue, take, expect }) {
    await enqueue({ payload: { body: new Uint8Array([1]), headers: { a: '1' } } })
    await enqueue({ payload: { body: new Uint8Array([2]), headers: { a: '2' } } })
    const key = keyOf('failed')
    const { hold } = await grant({ key })
    const payload = { body: new Uint8Array([3]), headers: { a: '3' } }
    await store.fail(hold, { code: 'x', retentionMs: 1, retryInMs: 0, payload })
    const again = await grant({ key })
    await store.fail(again.hold, {
      code: 'x',
      retentionMs: 1,
      retryInMs: 0,
      payload: { body: new Uint8Array([4]), headers: { a: '4' } },
    })
    const taken = await take()
    const seen = taken.map((one) => [hex(one.payload.body), one.payload.headers.a]).sort()
    expect(seen).toEqual([
      ['01', '1'],
      ['03', '3'],
    ])
  },

  async S36({ store, entry, take, expect }) {
    await store.claim(
      Array.from({ length: 60 }, (_, index) =>
        entry({ key: keyOf(`d-${index}`), mode: 'queued', payload: payloadOf('{}') }),
      ),
    )
    const hauls = await Promise.all(Array.from({ length: 10 }, () => take({ limit: 10 })))
    // A taker may come away with less than it asked for when others hold the rows it looked at.
    let rest = await take({ limit: 60 })
    const all = [...hauls.flat()]
    for (; rest.length > 0; rest = await take({ limit: 60 })) all.push(...rest)
    const ids = all.map(({ hold }) => hold.key.deliveryId)
    expect(ids.length).toEqual(60)
    expect(new Set(ids).size).toEqual(60)
    expect(new Set(all.map(({ hold }) => `${hold.token} ${hold.fence}`)).size).toEqual(60)
  },

  async S37({ store, grant, enqueue, claim, take, advance, tickMs, expect }) {
    const payload = payloadOf('{}')
    const retentionMs = 1000 * tickMs
    const failing = async (deliveryId: string, retryInMs: number, withBytes: boolean) => {
      const { hold } = await grant({ key: keyOf(deliveryId) })
      const bytes = withBytes ? { payload } : {}
      await store.fail(hold, { code: 'x', retentionMs, retryInMs, ...bytes })
    }
    await enqueue({ key: keyOf('pending') })
    await failing('due', 5 * tickMs, true)
    await failing('later', 500 * tickMs, true)
    await failing('without bytes', 0, false)
    await grant({ key: keyOf('abandoned') })
    await claim({ key: keyOf('abandoned'), mode: 'queued', payload })
    await grant({ key: keyOf('abandoned without bytes') })
    const completed = await grant({ key: keyOf('completed') })
    await claim({ key: keyOf('completed'), mode: 'queued', payload })
    await store.complete(completed.hold, { retentionMs, payloadRetentionMs: retentionMs })
    const dead = await grant({ key: keyOf('dead') })
    await store.fail(dead.hold, { code: 'x', retentionMs, dead: true, payload })
    await advance(11)
    await grant({ key: keyOf('live') })
    await claim({ key: keyOf('live'), mode: 'queued', payload })
    const taken = await take()
    expect(taken.map(({ hold }) => hold.key.deliveryId).sort()).toEqual([
      'abandoned',
      'due',
      'pending',
    ])
    expect((await take()).length).toEqual(0)
  },

  async S38({ store, enqueue, claim, take, record, advance, tickMs, expect }) {
    await enqueue({ event: 'push', action: 'opened' })
    const created = (await record()).createdAt.getTime()
    await advance(3)
    const first = present((await take())[0], 'The taken delivery')
    expect({
      attempt: first.attempt,
      leaseMs: first.leaseMs,
      event: first.event,
      action: first.action,
      receivedAt: first.receivedAt.getTime(),
      key: first.hold.key,
    }).toEqual({
      attempt: 1,
      leaseMs: 10 * tickMs,
      event: 'push',
      action: 'opened',
      receivedAt: created,
      key: keyOf(),
    })
    const held = await record()
    expect({ state: held.state, fence: held.fence }).toEqual({
      state: 'processing',
      fence: first.hold.fence,
    })
    expect((await claim()).status).toEqual('processing')
    expect(await store.renew(first.hold, 10 * tickMs)).toEqual('ok')
    await advance(11)
    const second = present((await take())[0], 'The taken delivery')
    expect(second.attempt).toEqual(2)
    expect(second.hold.fence > first.hold.fence).toEqual(true)
    expect(await store.complete(first.hold, { retentionMs: 100 * tickMs })).toEqual('lost')
    expect(await store.complete(second.hold, { retentionMs: 100 * tickMs })).toEqual('ok')
  },

  async S39({ enqueue, take, record, claim, advance, expect }) {
    await enqueue()
    expect((await take({ maxAttempts: 2 })).length).toEqual(1)
    await advance(11)
    expect((await take({ maxAttempts: 2 })).length).toEqual(1)
    await advance(11)
    expect((await take({ maxAttempts: 2 })).length).toEqual(0)
    const { state, code } = await record()
    expect({ state, code }).toEqual({ state: 'dead', code: 'attempts_exhausted' })
    expect((await claim()).status).toEqual('dead')
  },

  async S40({ enqueue, take, expect }) {
    for (const id of ['a', 'b', 'c', 'd', 'e']) await enqueue({ key: keyOf(id) })
    const counts = [(await take({ limit: 2 })).length, (await take({ limit: 2 })).length]
    counts.push((await take({ limit: 2 })).length, (await take({ limit: 2 })).length)
    expect(counts).toEqual([2, 2, 1, 0])
  },

  async S41({ store, enqueue, grant, take, record, tickMs, expect }) {
    await enqueue()
    const { hold, attempt } = await grant({ maxAttempts: 1 })
    expect(attempt).toEqual(1)
    expect((await take()).length).toEqual(0)
    expect(await store.complete(hold, { retentionMs: 100 * tickMs })).toEqual('ok')
    expect((await record()).state).toEqual('completed')
  },

  async S42({ store, enqueue, take, record, expect }) {
    await enqueue()
    const first = present((await take())[0], 'The taken delivery')
    expect(await store.release(first.hold)).toEqual('ok')
    const { state, attempt } = await record()
    expect({ state, attempt }).toEqual({ state: 'pending', attempt: 0 })
    const second = present((await take({ maxAttempts: 1 }))[0], 'The taken delivery')
    expect(second.attempt).toEqual(1)
    expect(second.hold.fence > first.hold.fence).toEqual(true)
  },

  async S43({ store, grant, take, record, advance, tickMs, expect }) {
    const { hold } = await grant()
    await store.fail(hold, {
      code: 'x',
      retentionMs: 1000 * tickMs,
      retryInMs: 20 * tickMs,
      payload: payloadOf('"kept"'),
    })
    const failed = await record()
    expect({ hasPayload: failed.hasPayload, purged: failed.purgeAt !== undefined }).toEqual({
      hasPayload: true,
      purged: false,
    })
    expect((await take()).length).toEqual(0)
    await advance(21)
    const taken = await take()
    expect(taken.map(({ payload, attempt }) => [text(payload), attempt])).toEqual([['"kept"', 2]])
  },

  async S44({ store, enqueue, take, record, advance, tickMs, expect }) {
    const finish = async (deliveryId: string, payloadRetentionMs?: number) => {
      await enqueue({ key: keyOf(deliveryId) })
      const { hold } = present((await take())[0], 'The taken delivery')
      await store.complete(hold, {
        retentionMs: 100 * tickMs,
        ...(payloadRetentionMs === undefined ? {} : { payloadRetentionMs }),
      })
      return (await record(keyOf(deliveryId))).hasPayload
    }
    expect(await finish('dropped')).toEqual(false)
    expect(await finish('kept', 10 * tickMs)).toEqual(true)
    await advance(11)
    await store.purge(10)
    const { state, hasPayload } = await record(keyOf('kept'))
    expect({ state, hasPayload }).toEqual({ state: 'completed', hasPayload: false })
  },

  async S45({ store, enqueue, claim, take, tickMs, expect }) {
    const million = Uint8Array.from({ length: 1_000_000 }, (_, index) => (index * 31) % 256)
    const bodies = [everyByte, new Uint8Array(), million]
    for (const body of bodies) {
      const key = keyOf(`${body.length} bytes`)
      await enqueue({ key, payload: { body, headers: {} } })
      const { hold, payload } = present((await take())[0], 'The taken delivery')
      // Compared as one truth value: a difference of a megabyte tells nobody anything.
      expect(sameBytes(payload.body, body)).toEqual(true)
      await store.complete(hold, { retentionMs: 100 * tickMs, result: body })
      const copy = await claim({ key })
      if (copy.status !== 'completed') throw new Error(`The store answered "${copy.status}".`)
      expect(sameBytes(present(copy.result, 'The result'), body)).toEqual(true)
    }
  },

  async S46({ enqueue, take, expect }) {
    const headers = Object.fromEntries([
      ['content-type', 'application/json; charset=utf-8'],
      ['__proto__', 'a header like any other'],
      ['constructor', ''],
      ['x-note', 'quote " backslash \\ brace } ünïcode ☕'],
    ])
    await enqueue({ payload: { body: new Uint8Array(), headers } })
    const { payload } = present((await take())[0], 'The taken delivery')
    expect(Object.entries(payload.headers).sort()).toEqual(Object.entries(headers).sort())
  },

  async S47({ store, enqueue, claim, take, advance, tickMs, expect }) {
    const body = new Uint8Array([1, 2, 3])
    await enqueue({ payload: { body, headers: {} } })
    body.fill(9)
    const first = present((await take())[0], 'The taken delivery')
    expect(hex(first.payload.body)).toEqual('010203')
    first.payload.body.fill(9)
    await advance(11)
    const second = present((await take())[0], 'The taken delivery')
    expect(hex(second.payload.body)).toEqual('010203')

    const result = new Uint8Array([4, 5, 6])
    await store.complete(second.hold, { retentionMs: 100 * tickMs, result })
    result.fill(9)
    for (let copy = 0; copy < 2; copy++) {
      const found = await claim()
      if (found.status !== 'completed') throw new Error(`The store answered "${found.status}".`)
      const bytes = present(found.result, 'The result')
      expect(hex(bytes)).toEqual('040506')
      bytes.fill(9)
    }
  },
} as const satisfies Record<string, StoreGuarantee>
