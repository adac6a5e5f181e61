import { hasCode, type Store } from '@webhook-inbox/core'
import type pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  type OwnPostgresServer,
  onConnection,
  openPool,
  startPostgres,
} from '../../../test/services/postgres.ts'
import { startProxy, type TcpProxy } from '../../../test/services/proxy.ts'
import { claimOne, entryOf, grant, quietStore, rejectionOf } from './support.ts'

const timeoutMs = 700

let server: OwnPostgresServer
let proxy: TcpProxy
let database: string
let pool: pg.Pool
let store: Store
let unhandled: unknown[] = []

const collect = (error: unknown) => unhandled.push(error)

beforeAll(async () => {
  server = await startPostgres()
  process.on('unhandledRejection', collect)
})
afterAll(async () => {
  process.off('unhandledRejection', collect)
  await server?.stop()
})

beforeEach(async () => {
  unhandled = []
  database = await server.createDatabase()
  proxy = await startProxy(server)
  pool = openPool(`postgres://postgres@${proxy.host}:${proxy.port}/${database}`, 4)
  store = quietStore({ pool, timeoutMs })
  await store.setup()
})
afterEach(async () => {
  await store.close()
  proxy.cut()
  await pool.end()
  await proxy.close()
  expect(unhandled).toEqual([])
})

/** A call that has to fail as unavailable, and soon. */
async function expectUnavailable(call: Promise<unknown>): Promise<void> {
  const startedAtMs = performance.now()
  const error = await rejectionOf(call)
  expect(hasCode(error, 'ERR_STORE_UNAVAILABLE'), String(error)).toBe(true)
  expect(performance.now() - startedAtMs).toBeLessThan(timeoutMs + 500)
}

async function expectRecovery(): Promise<void> {
  await expect
    .poll(async () => (await claimOne(store, `recovered-${performance.now()}`)).status, {
      timeout: 10_000,
    })
    .toBe('claimed')
}

describe('a reply that is swallowed after the server did the work', () => {
  it('leaves the claim with its owner, who asks again with its token', async () => {
    const entry = entryOf('swallowed')
    const swallowed = proxy.swallowReply()
    const lost = expectUnavailable(store.claim([entry]))
    await swallowed
    await lost
    const record = await store.get(entry.key)
    expect(record?.state).toBe('processing')
    const [again] = await store.claim([entry])
    expect(again).toMatchObject({ status: 'claimed', fence: record?.fence, attempt: 1 })
    expect((await claimOne(store, 'swallowed')).status).toBe('processing')
  })

  it('is `already` for a completion that is sent again', async () => {
    const hold = await grant(store, 'completed')
    const swallowed = proxy.swallowReply()
    const lost = expectUnavailable(store.complete(hold, { retentionMs: 60_000 }))
    await swallowed
    await lost
    expect(await store.complete(hold, { retentionMs: 60_000 })).toBe('already')
  })

  it('gives an unseen claim back', async () => {
    const entry = entryOf('abandoned')
    const swallowed = proxy.swallowReply()
    const lost = expectUnavailable(store.claim([entry]))
    await swallowed
    await lost
    await store.abandon(entry.key, entry.token)
    expect(await claimOne(store, 'abandoned')).toMatchObject({ status: 'claimed', attempt: 1 })
  })
})

describe('a network that breaks', () => {
  it('is unavailable while connections are refused, and works again afterwards', async () => {
    proxy.refuse()
    await expectUnavailable(claimOne(store, 'a'))
    await expectUnavailable(store.stats())
    proxy.accept()
    await expectRecovery()
  })

  for (const direction of ['requests', 'replies'] as const) {
    it(`does not hang on connections that lose all ${direction}, and does not keep them`, async () => {
      const hold = await grant(store, 'held')
      proxy.drop(direction)
      await Promise.all([
        expectUnavailable(claimOne(store, 'a')),
        expectUnavailable(store.renew(hold, 60_000)),
        expectUnavailable(store.complete(hold, { retentionMs: 60_000 })),
        expectUnavailable(store.fail(hold, { code: 'x', retentionMs: 60_000, retryInMs: 0 })),
        expectUnavailable(store.get(hold.key)),
        expectUnavailable(store.take({ limit: 1, leaseMs: 1000, deadRetentionMs: 1000 })),
      ])
      proxy.accept()
      await expectRecovery()
    })
  }

  it('has room again in a pool whose every connection was asked for in vain', async () => {
    await pool.end()
    pool = openPool(`postgres://postgres@${proxy.host}:${proxy.port}/${database}`, 1)
    const asking = quietStore({ pool, timeoutMs })
    proxy.drop('requests')
    await expectUnavailable(claimOne(asking, 'a'))
    proxy.accept()
    await expect
      .poll(async () => (await asking.get(entryOf('a').key)) ?? 'answered', { timeout: 10_000 })
      .toBe('answered')
    await asking.close()
  })

  it('is unavailable when answers come too late, and gives none of them to the wrong call', async () => {
    const hold = await grant(store, 'held')
    proxy.delay(timeoutMs * 2)
    await expectUnavailable(claimOne(store, 'late'))
    proxy.delay(0)
    await expectRecovery()
    expect((await store.get(hold.key))?.fence).toBe(hold.fence)
    expect(await store.complete(hold, { retentionMs: 60_000 })).toBe('ok')
  })

  it('survives connections that die while nobody uses them', async () => {
    await claimOne(store, 'a')
    proxy.cut()
    await expect.poll(() => pool.totalCount).toBe(0)
    await expectRecovery()
  })
})

describe('a locked record on a slow network', () => {
  it('is waited for within the time of the whole call', async () => {
    const limitMs = 2000
    const patient = quietStore({ pool, timeoutMs: limitMs })
    const hold = await grant(patient, 'locked')
    await onConnection(server.url(database), async (client) => {
      await client.query('BEGIN')
      await client.query('SELECT FROM webhook_inbox FOR UPDATE')
      // To learn that it is locked takes twice this.
      proxy.delay(limitMs * 0.35)
      const startedAtMs = performance.now()
      const error = await rejectionOf(patient.complete(hold, { retentionMs: 60_000 }))
      expect(hasCode(error, 'ERR_STORE_UNAVAILABLE'), String(error)).toBe(true)
      expect(performance.now() - startedAtMs).toBeLessThan(limitMs * 1.4)
    })
  })
})

describe('the server', () => {
  it('is killed and comes back: nothing granted is granted twice', async () => {
    const granted = await Promise.all(
      Array.from({ length: 20 }, (_, index) => grant(store, `kept-${index}`)),
    )
    const inFlight = Array.from({ length: 50 }, (_, index) => entryOf(`in-flight-${index}`))
    const answers = Promise.allSettled(inFlight.map((entry) => store.claim([entry])))
    await server.kill()
    await expectUnavailable(claimOne(store, 'down'))
    const settled = await answers
    await server.start()
    await expectRecovery()
    for (const hold of granted) {
      expect((await claimOne(store, hold.key.deliveryId)).status).toBe('processing')
      expect(await store.complete(hold, { retentionMs: 60_000 })).toBe('ok')
    }
    for (const [index, answer] of settled.entries()) {
      const won = answer.status === 'fulfilled' && answer.value[0]?.status === 'claimed'
      // Who was told nothing may have it or not; who was told "claimed" has it.
      if (won) expect((await claimOne(store, `in-flight-${index}`)).status).toBe('processing')
    }
    const fences = granted.map(({ fence }) => fence)
    expect((await grant(store, 'later')).fence).toBeGreaterThan(Math.max(...fences))
  })

  it('ends its connections: the calls after that succeed', async () => {
    await claimOne(store, 'a')
    await onConnection(server.url(database), (client) =>
      client.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      ),
    )
    await expectRecovery()
  })

  it('cancels a statement that takes too long: unavailable, with the cause', async () => {
    await onConnection(server.url(), (client) =>
      client.query(`ALTER DATABASE ${database} SET statement_timeout = '100ms'`),
    )
    await using other = await disposablePool(server.url(database), 1)
    const limited = quietStore({ pool: other.pool, timeoutMs })
    const hold = await grant(store, 'locked')
    await onConnection(server.url(database), async (client) => {
      await client.query('BEGIN')
      await client.query('SELECT FROM webhook_inbox FOR UPDATE')
      const error = await rejectionOf(limited.complete(hold, { retentionMs: 60_000 }))
      expect(error).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE', cause: { code: '57014' } })
      await client.query('ROLLBACK')
    })
    expect(await limited.complete(hold, { retentionMs: 60_000 })).toBe('ok')
  })

  it('is read-only: unavailable, and told so by setup', async () => {
    await onConnection(server.url(), (client) =>
      client.query(`ALTER DATABASE ${database} SET default_transaction_read_only = on`),
    )
    await using other = await disposablePool(server.url(database), 1)
    const replica = quietStore({ pool: other.pool, timeoutMs })
    await expectUnavailable(claimOne(replica, 'a'))
    expect(await rejectionOf(replica.setup())).toMatchObject({
      code: 'ERR_STORE_SETUP',
      message: expect.stringContaining('read-only'),
    })
  })
})

describe('a pool', () => {
  it('that has no connection left answers within the time, and never sends what it gave up', async () => {
    await using only = await disposablePool(server.url(database), 1)
    const starved = quietStore({ pool: only.pool, timeoutMs: 200 })
    const taken = await only.pool.connect()
    const startedAtMs = performance.now()
    const error = await rejectionOf(claimOne(starved, 'starved'))
    expect(performance.now() - startedAtMs).toBeLessThan(700)
    expect(error).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' })
    taken.release()
    expect((await claimOne(starved, 'after')).status).toBe('claimed')
    expect(await starved.get(entryOf('starved').key)).toBeUndefined()
  })
})

async function disposablePool(connectionString: string, max: number) {
  const opened = openPool(connectionString, max)
  return { pool: opened, [Symbol.asyncDispose]: () => opened.end() }
}
