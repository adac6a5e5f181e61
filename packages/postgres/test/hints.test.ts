import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPgBouncer } from '../../../test/services/pgbouncer.ts'
import {
  onConnection,
  openPool,
  type PostgresServer,
  postgresTargets,
} from '../../../test/services/postgres.ts'
import { claimOne, entryOf, quietStore } from './support.ts'

let server: PostgresServer
beforeAll(async () => {
  const target = postgresTargets().at(-1)
  if (target === undefined) throw new Error('No PostgreSQL is here.')
  server = await target.start()
})
afterAll(() => server?.stop())

const payload = { body: new Uint8Array([1]), headers: {} }

async function openTwo() {
  const url = server.url(await server.createDatabase())
  const pools = [openPool(url, 2), openPool(url, 2)] as const
  const [here, there] = [quietStore({ pool: pools[0] }), quietStore({ pool: pools[1] })]
  await here.setup()
  return {
    url,
    here,
    there,
    async close() {
      await here.close()
      await there.close()
      await Promise.all(pools.map((pool) => pool.end()))
    },
  }
}

/** A callback and the promise of its next call. */
function bell() {
  let ring = (): void => {}
  return {
    ring: () => ring(),
    rung: () =>
      new Promise<void>((resolve) => {
        ring = resolve
      }),
  }
}

describe('a watch', () => {
  it('hears of what another process stores, and says so', async () => {
    const { here, there, close } = await openTwo()
    const { ring, rung } = bell()
    const watch = await here.watch?.(ring)
    expect(watch?.reach).toBe('all')
    const heard = rung()
    await claimOne(there, 'd', { mode: 'queued', payload })
    await heard
    await watch?.close()
    await close()
  })

  it('listens again when its connection was ended', async () => {
    const { url, here, there, close } = await openTwo()
    const { ring, rung } = bell()
    const watch = await here.watch?.(ring)
    const ended = await onConnection(url, (client) =>
      client.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND datname = current_database()`,
      ),
    )
    expect(ended.rowCount).toBe(1)
    // It tells itself when it listens again.
    await rung()
    const heard = rung()
    await claimOne(there, 'd', { mode: 'queued', payload })
    await heard
    await watch?.close()
    await close()
  })

  it('leaves no connection behind when it is closed', async () => {
    const { url, here, close } = await openTwo()
    const watches = await Promise.all([here.watch?.(() => {}), here.watch?.(() => {})])
    const listening = () =>
      onConnection(url, async (client) => {
        const { rows } = await client.query(
          `SELECT FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND datname = current_database()`,
        )
        return rows.length
      })
    expect(await listening()).toBe(1)
    await Promise.all(watches.map((watch) => watch?.close()))
    await expect.poll(listening).toBe(0)
    await close()
  })

  it('knows that nothing comes through PgBouncer in transaction mode, and hears its own instance', async () => {
    const database = await server.createDatabase()
    const bouncer = await startPgBouncer(server)
    const pool = openPool(bouncer.url(database), 2)
    const store = quietStore({ pool })
    await store.setup()
    const { ring, rung } = bell()
    const watch = await store.watch?.(ring)
    expect(watch?.reach).toBe('instance')
    const heard = rung()
    await claimOne(store, 'd', { mode: 'queued', payload })
    await heard
    await watch?.close()
    await store.close()
    await pool.end()
    await bouncer.stop()
  })
})

describe('a line', () => {
  it('keeps the order of receipt also for what comes together', async () => {
    const { here, close } = await openTwo()
    const ids = Array.from({ length: 300 }, (_, index) => `${(index * 7919) % 1000}-${index}`)
    await Promise.all(
      ids.map((id) => claimOne(here, id, { mode: 'queued', payload, order: 'line' })),
    )
    const ran: string[] = []
    for (;;) {
      const [taken] = await here.take({ limit: 10, leaseMs: 60_000, deadRetentionMs: 1000 })
      if (taken === undefined) break
      ran.push(taken.hold.key.deliveryId)
      await here.complete(taken.hold, { retentionMs: 1000 })
    }
    expect(ran).toEqual(ids)
    await close()
  })

  it('takes what is new while the head is completed in a transaction that stays open', async () => {
    const { url, here, there, close } = await openTwo()
    const queued = { mode: 'queued', payload, order: 'line' } as const
    await claimOne(here, 'first', queued)
    const [head] = await here.take({ limit: 1, leaseMs: 60_000, deadRetentionMs: 1000 })
    if (head === undefined) throw new Error('The head was not taken.')
    await onConnection(url, async (client) => {
      await client.query('BEGIN')
      expect(await here.complete(head.hold, { retentionMs: 1000 }, client)).toBe('ok')
      expect(await claimOne(there, 'second', queued)).toMatchObject({
        status: 'pending',
        fresh: true,
      })
      expect(await there.take({ limit: 5, leaseMs: 1000, deadRetentionMs: 1000 })).toEqual([])
      await client.query('COMMIT')
    })
    const [next] = await there.take({ limit: 5, leaseMs: 1000, deadRetentionMs: 1000 })
    expect(next?.hold.key.deliveryId).toBe('second')
    await close()
  })

  it('is never left without a taker, whatever comes together', async () => {
    const { here, there, close } = await openTwo()
    const lines = 5
    let stored = 0
    const store = async (from: typeof here, name: string) => {
      for (let index = 0; index < 40; index++) {
        await claimOne(from, `${name}-${index}`, {
          mode: 'queued',
          payload,
          order: `line ${index % lines}`,
        })
        stored += 1
      }
    }
    const held = new Map<string, string>()
    let ran = 0
    const work = async (on: typeof here) => {
      for (let idle = 0; ran < 160 && idle < 500; idle++) {
        const taken = await on.take({ limit: 3, leaseMs: 60_000, deadRetentionMs: 1000 })
        for (const { hold } of taken) {
          const line = `line ${Number(hold.key.deliveryId.split('-')[1]) % lines}`
          expect(held.get(line)).toBeUndefined()
          held.set(line, hold.key.deliveryId)
          await new Promise((resolve) => setTimeout(resolve, 1))
          held.delete(line)
          expect(await on.complete(hold, { retentionMs: 1000 })).toBe('ok')
          ran += 1
          idle = 0
        }
        if (taken.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
    await Promise.all([
      store(here, 'a'),
      store(there, 'b'),
      store(here, 'c'),
      store(there, 'd'),
      work(here),
      work(there),
      work(there),
    ])
    expect([stored, ran]).toEqual([160, 160])
    await close()
  })

  it('of ten thousand that wait costs a take no more than a short one', async () => {
    const { url, here, close } = await openTwo()
    const queued = { mode: 'queued', payload, order: 'line' } as const
    for (let batch = 0; batch < 10; batch++) {
      await here.claim(
        Array.from({ length: 1000 }, (_, index) => entryOf(`${batch}-${index}`, queued)),
      )
    }
    const [head] = await here.take({ limit: 1, leaseMs: 60_000, deadRetentionMs: 1000 })
    expect(head?.hold.key.deliveryId).toBe('0-0')
    const read = await onConnection(url, async (client) => {
      const tuples = `SELECT sum(idx_tup_read + seq_tup_read)::integer AS read
        FROM pg_stat_user_tables JOIN (SELECT relid, sum(idx_tup_read) AS idx_tup_read FROM pg_stat_user_indexes GROUP BY relid) AS indexes USING (relid)`
      await client.query('SELECT pg_stat_force_next_flush()').catch(() => {})
      const before = (await client.query(tuples)).rows[0].read
      for (let round = 0; round < 20; round++)
        expect(await here.take({ limit: 10, leaseMs: 1000, deadRetentionMs: 1000 })).toEqual([])
      // Statistics are told when a connection has been idle for a moment.
      await new Promise((resolve) => setTimeout(resolve, 1500))
      await client.query('SELECT pg_stat_clear_snapshot()')
      return (await client.query(tuples)).rows[0].read - before
    })
    expect(read).toBeLessThan(2000)
    await close()
  })
})
