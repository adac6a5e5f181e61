import type { DeliveryKey } from '@webhook-inbox/core'
import { hex, keyOf, present, rejection, type StoreGuarantee } from './harness.ts'

/** How a claim ends, and what later claims learn of it. */
export const settlingGuarantees = {
  async S16({ store, grant, claim, tickMs, expect }) {
    const { hold } = await grant()
    const result = new TextEncoder().encode('{"answer":42}')
    expect(await store.complete(hold, { retentionMs: 100 * tickMs, result })).toEqual('ok')
    const copy = await claim()
    if (copy.status !== 'completed') throw new Error(`The store answered "${copy.status}".`)
    expect(hex(present(copy.result, 'The result'))).toEqual(hex(result))
    expect(copy.at instanceof Date && Number.isFinite(copy.at.getTime())).toEqual(true)
    // Also the token that completed it: its run is over.
    expect((await claim({ token: hold.token })).status).toEqual('completed')

    const plain = await grant({ key: keyOf('plain') })
    await store.complete(plain.hold, { retentionMs: 100 * tickMs })
    const other = await claim({ key: keyOf('plain') })
    expect(other.status === 'completed' && other.result === undefined).toEqual(true)
  },

  async S17({ store, grant, enqueue, take, record, tickMs, expect }) {
    const retentionMs = 100 * tickMs
    const completed = await grant({ key: keyOf('completed') })
    const failed = await grant({ key: keyOf('failed') })
    const dead = await grant({ key: keyOf('dead') })
    const released = await grant({ key: keyOf('released') })
    const twice = async (call: () => Promise<string>) => [await call(), await call()]
    expect(await twice(() => store.complete(completed.hold, { retentionMs }))).toEqual([
      'ok',
      'already',
    ])
    const failure = { code: 'x', retentionMs, retryInMs: 0 }
    expect(await twice(() => store.fail(failed.hold, failure))).toEqual(['ok', 'already'])
    expect(
      await twice(() => store.fail(dead.hold, { code: 'x', retentionMs, dead: true })),
    ).toEqual(['ok', 'already'])
    expect(await twice(() => store.release(released.hold))).toEqual(['ok', 'already'])
    await enqueue({ key: keyOf('queued') })
    const taken = (await take({ limit: 10 })).find(({ hold }) => hold.key.deliveryId === 'queued')
    const { hold } = present(taken, 'The taken delivery')
    expect(await twice(() => store.release(hold))).toEqual(['ok', 'already'])
    expect((await record(keyOf('released'))).attempt).toEqual(0)
  },

  async S18({ store, grant, record, tickMs, expect }) {
    const retentionMs = 100 * tickMs
    const completed = await grant({ key: keyOf('completed') })
    await store.complete(completed.hold, { retentionMs })
    expect({
      fail: await store.fail(completed.hold, { code: 'x', retentionMs, retryInMs: 0 }),
      release: await store.release(completed.hold),
      renew: await store.renew(completed.hold, 10 * tickMs),
      state: (await record(keyOf('completed'))).state,
    }).toEqual({ fail: 'lost', release: 'lost', renew: 'lost', state: 'completed' })

    const failed = await grant({ key: keyOf('failed') })
    await store.fail(failed.hold, { code: 'x', retentionMs, retryInMs: 0 })
    expect({
      complete: await store.complete(failed.hold, { retentionMs }),
      release: await store.release(failed.hold),
      renew: await store.renew(failed.hold, 10 * tickMs),
      state: (await record(keyOf('failed'))).state,
      attempt: (await record(keyOf('failed'))).attempt,
    }).toEqual({ complete: 'lost', release: 'lost', renew: 'lost', state: 'failed', attempt: 1 })

    const dead = await grant({ key: keyOf('dead') })
    await store.fail(dead.hold, { code: 'x', retentionMs, dead: true })
    expect({
      complete: await store.complete(dead.hold, { retentionMs }),
      release: await store.release(dead.hold),
      renew: await store.renew(dead.hold, 10 * tickMs),
      state: (await record(keyOf('dead'))).state,
    }).toEqual({ complete: 'lost', release: 'lost', renew: 'lost', state: 'dead' })

    const released = await grant({ key: keyOf('released') })
    await store.release(released.hold)
    const abandoned = await grant({ key: keyOf('abandoned') })
    await store.abandon(abandoned.hold.key, abandoned.hold.token)
    for (const { hold } of [released, abandoned]) {
      expect({
        complete: await store.complete(hold, { retentionMs }),
        fail: await store.fail(hold, { code: 'x', retentionMs, retryInMs: 0 }),
        bury: await store.fail(hold, { code: 'x', retentionMs, dead: true }),
        renew: await store.renew(hold, 10 * tickMs),
        state: (await record(hold.key)).state,
        hasCode: 'code' in (await record(hold.key)),
      }).toEqual({
        complete: 'lost',
        fail: 'lost',
        bury: 'lost',
        renew: 'lost',
        state: 'failed',
        hasCode: false,
      })
    }
  },

  async S19({ store, grant, record, tickMs, expect }) {
    const first = await grant()
    const retryInMs = 100 * tickMs
    await store.fail(first.hold, { code: 'handler_error', retentionMs: 1000 * tickMs, retryInMs })
    const failed = await record()
    expect({ state: failed.state, code: failed.code }).toEqual({
      state: 'failed',
      code: 'handler_error',
    })
    const next = await grant()
    expect(next.attempt).toEqual(2)
    expect(next.fence > first.fence).toEqual(true)
    await store.complete(next.hold, { retentionMs: 1000 * tickMs })
    // What went wrong before is no fault of a completed record.
    expect('code' in (await record())).toEqual(false)
  },

  async S20({ store, grant, claim, advance, tickMs, expect }) {
    const { hold } = await grant()
    await store.fail(hold, { code: 'x', retentionMs: 1000 * tickMs, retryInMs: 20 * tickMs })
    await advance(5)
    const early = await claim({ respectBackoff: true })
    if (early.status !== 'waiting') throw new Error(`The store answered "${early.status}".`)
    expect(early.retryInMs > 0 && early.retryInMs <= 15 * tickMs).toEqual(true)
    await advance(16)
    expect((await claim({ respectBackoff: true })).status).toEqual('claimed')
  },

  async S21({ store, grant, claim, take, record, advance, tickMs, expect }) {
    const { hold } = await grant()
    await store.fail(hold, { code: 'rejected', retentionMs: 100 * tickMs, dead: true })
    await advance(20)
    expect((await claim()).status).toEqual('dead')
    expect((await claim({ token: hold.token })).status).toEqual('dead')
    expect((await take()).length).toEqual(0)
    const { state, code } = await record()
    expect({ state, code }).toEqual({ state: 'dead', code: 'rejected' })
  },

  async S22({ store, grant, claim, tickMs, expect }) {
    const first = await grant()
    await store.fail(first.hold, { code: 'x', retentionMs: 100 * tickMs, retryInMs: 0 })
    const second = await grant()
    await store.fail(second.hold, { code: 'x', retentionMs: 100 * tickMs, dead: true })
    const revived = await grant({ redeliverDead: true, maxAttempts: 2, respectBackoff: true })
    expect(revived.attempt).toEqual(1)
    expect(revived.fence > second.fence).toEqual(true)
    expect((await claim({ redeliverDead: true })).status).toEqual('processing')
    expect(await store.complete(second.hold, { retentionMs: 100 * tickMs })).toEqual('lost')
  },

  async S23({ store, grant, claim, record, advance, tickMs, expect }) {
    // Seconds apart, which a store may round up to.
    const keeps = { unfinishedRetentionMs: 2_000_000, deadRetentionMs: 9_000_000 }
    const failure = { code: 'x', retentionMs: 1000 * tickMs, retryInMs: 0 }
    const failing = keyOf('failing')
    await store.fail((await grant({ key: failing, maxAttempts: 2 })).hold, failure)
    await store.fail((await grant({ key: failing, maxAttempts: 2 })).hold, failure)
    expect((await claim({ key: failing, maxAttempts: 2 })).status).toEqual('dead')

    const crashing = keyOf('crashing')
    await grant({ key: crashing, maxAttempts: 1 })
    expect((await claim({ key: crashing, maxAttempts: 1 })).status).toEqual('processing')
    await advance(11)
    expect((await claim({ key: crashing, maxAttempts: 1, ...keeps })).status).toEqual('dead')

    for (const key of [failing, crashing]) {
      const { state, code } = await record(key)
      expect({ state, code }).toEqual({ state: 'dead', code: 'attempts_exhausted' })
    }
    const keptMs = async (key: DeliveryKey): Promise<number> => {
      const { purgeAt, updatedAt } = await record(key)
      return present(purgeAt, 'The end of the retention').getTime() - updatedAt.getTime()
    }
    expect(Math.round((await keptMs(crashing)) / 10_000)).toEqual(900)

    // Without it a record that the claim itself buries is kept as an unfinished one.
    const spent = keyOf('spent')
    await store.fail((await grant({ key: spent })).hold, failure)
    const { unfinishedRetentionMs } = keeps
    expect((await claim({ key: spent, maxAttempts: 1, unfinishedRetentionMs })).status).toEqual(
      'dead',
    )
    expect(Math.round((await keptMs(spent)) / 10_000)).toEqual(200)
  },

  async S24({ store, grant, record, tickMs, expect }) {
    const first = await grant()
    await store.fail(first.hold, { code: 'x', retentionMs: 100 * tickMs, retryInMs: 0 })
    const second = await grant()
    expect(await store.release(second.hold)).toEqual('ok')
    const { state, attempt, fence } = await record()
    expect({ state, attempt, fence }).toEqual({ state: 'failed', attempt: 1, fence: second.fence })
    const third = await grant({ respectBackoff: true })
    expect(third.attempt).toEqual(2)
    expect(third.fence > second.fence).toEqual(true)
  },

  async S25({ store, grant, claim, record, tickMs, expect }) {
    await store.abandon(keyOf('unknown'), 'nobody')
    expect(await store.get(keyOf('unknown'))).toEqual(undefined)

    const { hold, fence } = await grant({ token: 'lost-reply' })
    const before = await record()
    await store.abandon(hold.key, 'another')
    expect(await record()).toEqual(before)
    await store.abandon(hold.key, 'lost-reply')
    await store.abandon(hold.key, 'lost-reply')
    const { state, attempt } = await record()
    expect({ state, attempt }).toEqual({ state: 'failed', attempt: 0 })
    const next = await grant({ token: 'next', respectBackoff: true })
    expect(next.attempt).toEqual(1)
    expect(next.fence > fence).toEqual(true)

    await store.abandon(hold.key, 'lost-reply')
    expect((await claim()).status).toEqual('processing')
    await store.complete(next.hold, { retentionMs: 100 * tickMs })
    await store.abandon(hold.key, 'next')
    expect((await claim()).status).toEqual('completed')
  },

  async S26({ store, grant, claim, record, advance, tickMs, expect }) {
    const retentionMs = 1000 * tickMs
    const steps: string[] = []
    const look = async () => steps.push(String((await record()).fingerprint))
    const first = await grant({ fingerprint: 'one' })
    await look()
    expect((await claim({ fingerprint: 'two' })).fingerprintMatches).toEqual(false)
    expect((await claim({ fingerprint: 'one' })).fingerprintMatches).toEqual(true)
    expect((await claim()).fingerprintMatches).toEqual(true)
    await store.renew(first.hold, 10 * tickMs)
    await look()
    await store.release(first.hold)
    await look()
    const second = await grant({ fingerprint: 'two' })
    await look()
    await store.fail(second.hold, { code: 'x', retentionMs, retryInMs: 0 })
    await look()
    const third = await grant()
    await store.fail(third.hold, { code: 'x', retentionMs, dead: true })
    await look()
    expect((await claim({ fingerprint: 'two' })).fingerprintMatches).toEqual(false)
    await grant({ redeliverDead: true, fingerprint: 'two' })
    await look()
    await advance(11)
    const last = await grant({ fingerprint: 'two' })
    await store.complete(last.hold, { retentionMs })
    await look()
    expect(steps).toEqual(Array.from({ length: 8 }, () => 'one'))
    expect((await claim({ fingerprint: 'two' })).fingerprintMatches).toEqual(false)
    expect((await claim({ fingerprint: 'one' })).fingerprintMatches).toEqual(true)
  },

  async S27({ store, entry, grant, writes, tickMs, expect }) {
    const { hold } = await grant()
    await store.complete(hold, { retentionMs: 100 * tickMs })
    const before = await writes()
    for (let copy = 0; copy < 10; copy++) await store.claim([entry({ fingerprint: 'late' })])
    expect((await writes()) - before).toEqual(0)
  },

  async S64({ store, grant, claim, record, advance, tickMs, expect }) {
    const retentionMs = 100 * tickMs
    const { hold } = await grant()
    await advance(11)
    expect((await claim({ maxAttempts: 1 })).status).toEqual('dead')
    expect({
      complete: await store.complete(hold, { retentionMs }),
      fail: await store.fail(hold, { code: 'x', retentionMs, retryInMs: 0 }),
      bury: await store.fail(hold, { code: 'x', retentionMs, dead: true }),
      release: await store.release(hold),
    }).toEqual({ complete: 'lost', fail: 'lost', bury: 'lost', release: 'lost' })
    expect((await record()).code).toEqual('attempts_exhausted')
  },

  async S59({ store, grant, claim, transaction, tickMs, expect }) {
    const { hold } = await grant()
    await transaction(async (tx) => {
      expect(await store.complete(hold, { retentionMs: 100 * tickMs }, tx)).toEqual('ok')
    })
    expect((await claim()).status).toEqual('completed')
    expect(await store.complete(hold, { retentionMs: 100 * tickMs })).toEqual('already')
  },

  async S60({ store, grant, claim, record, transaction, tickMs, expect }) {
    const { hold, fence } = await grant()
    const undone = new Error('rolled back')
    const thrown = await transaction(async (tx) => {
      expect(await store.complete(hold, { retentionMs: 100 * tickMs }, tx)).toEqual('ok')
      throw undone
    }).then(
      () => undefined,
      (error: unknown) => error,
    )
    expect(thrown === undone).toEqual(true)
    const after = await record()
    expect({ state: after.state, attempt: after.attempt, fence: after.fence }).toEqual({
      state: 'processing',
      attempt: 1,
      fence,
    })
    expect((await claim()).status).toEqual('processing')
    expect(await store.renew(hold, 10 * tickMs)).toEqual('ok')
    expect(await store.complete(hold, { retentionMs: 100 * tickMs })).toEqual('ok')
  },

  async S61({ store, grant, claim, transaction, advance, tickMs, expect }) {
    const dead = await grant()
    await advance(11)
    await grant()
    await transaction(async (tx) => {
      expect(await store.complete(dead.hold, { retentionMs: 100 * tickMs }, tx)).toEqual('lost')
    })
    expect((await claim()).status).toEqual('processing')
  },

  async S62({ store, grant, claim, tickMs, expect }) {
    const { hold } = await grant()
    const options = { retentionMs: 100 * tickMs }
    for (const tx of [{}, 'transaction', 7]) {
      expect(await rejection(() => store.complete(hold, options, tx))).toEqual('ERR_TRANSACTION')
    }
    expect((await claim()).status).toEqual('processing')
    expect(await store.complete(hold, options)).toEqual('ok')
  },
} as const satisfies Record<string, StoreGuarantee>
