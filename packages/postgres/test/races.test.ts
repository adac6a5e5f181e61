import type { Hold, Store } from '@webhook-inbox/core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  onConnection,
  openPool,
  type PostgresServer,
  postgresTargets,
} from '../../../test/services/postgres.ts'
import { claimOne, deadlocks, entryOf, grant, openStore, quietStore } from './support.ts'

for (const target of postgresTargets()) {
  describe(target.name, () => {
    let server: PostgresServer
    beforeAll(async () => {
      server = await target.start()
    })
    afterAll(() => server?.stop())

    it('lets 8 writers send overlapping batches of everything without a deadlock', async () => {
      const url = server.url(await server.createDatabase())
      const { close } = await openStore(url)
      const pools = Array.from({ length: 8 }, () => openPool(url, 4))
      const stores = pools.map((pool) => quietStore({ pool, timeoutMs: 30_000 }))
      const ids = Array.from({ length: 60 }, (_, index) => `d-${index}`)
      let grants = 0

      async function write(store: Store, writer: number): Promise<void> {
        for (let round = 0; round < 12; round++) {
          const order = ids.toSorted(() => Math.random() - 0.5)
          const entries = order.map((id) =>
            entryOf(id, { leaseMs: 1 + ((round + writer) % 3) * 5 }),
          )
          const results = await store.claim(entries)
          const holds = entries.flatMap(({ key, token }, index): Hold[] => {
            const result = results[index]
            return result?.status === 'claimed' ? [{ key, token, fence: result.fence }] : []
          })
          grants += holds.length
          await Promise.all([
            ...holds.map((hold) => store.renew(hold, 10)),
            ...holds.map((hold, index) =>
              index % 3 === 0
                ? store.complete(hold, { retentionMs: 1000 })
                : index % 3 === 1
                  ? store.fail(hold, { code: 'x', retentionMs: 1000, retryInMs: 0 })
                  : store.release(hold),
            ),
            store.purge(20),
          ])
        }
      }

      await Promise.all(stores.map(write))
      expect(grants).toBeGreaterThan(200)
      expect(await deadlocks(url)).toBe(0)
      await Promise.all(pools.map((pool) => pool.end()))
      await close()
    })

    it('answers a batch of 200 while one of its rows is locked by a slow transaction', async () => {
      const url = server.url(await server.createDatabase())
      const { store, close } = await openStore(url, { timeoutMs: 1500 })
      const entries = Array.from({ length: 200 }, (_, index) => entryOf(`d-${index}`))
      const first = await store.claim(entries)
      const holds = entries.map(({ key, token }, index): Hold => {
        const result = first[index]
        return { key, token, fence: result?.status === 'claimed' ? result.fence : 0 }
      })
      await onConnection(url, async (slow) => {
        await slow.query('BEGIN')
        await slow.query(`SELECT FROM webhook_inbox WHERE delivery_id = 'd-77' FOR UPDATE`)
        const startedAtMs = performance.now()

        const renewals = await Promise.allSettled(holds.map((hold) => store.renew(hold, 1)))
        expect(performance.now() - startedAtMs).toBeLessThan(2200)
        const failed = renewals.flatMap(({ status }, index) =>
          status === 'rejected' ? [index] : [],
        )
        expect(failed).toEqual([77])

        // Now the leases of all others are over, and others come for them.
        await slow.query('UPDATE webhook_inbox SET until_at = 1 WHERE delivery_id = $1', ['d-77'])
        const takeoverAtMs = performance.now()
        const copies = await store.claim(
          Array.from({ length: 200 }, (_, index) => entryOf(`d-${index}`)),
        )
        expect(performance.now() - takeoverAtMs).toBeLessThan(1500)
        const statuses = copies.map(({ status }) => status)
        expect(statuses[77]).toBe('processing')
        expect(statuses.filter((status) => status === 'claimed')).toHaveLength(199)
        await slow.query('ROLLBACK')
      })
      const held = holds[77]
      if (held === undefined) throw new Error('No hold.')
      expect(await store.complete(held, { retentionMs: 1000 })).toBe('ok')
      await close()
    })

    it('gives fences that grow over purging, through every instance', async () => {
      const url = server.url(await server.createDatabase())
      const one = await openStore(url)
      const two = await openStore(url)
      const fences: number[] = []
      for (let round = 0; round < 6; round++) {
        const { store } = round % 2 === 0 ? one : two
        const hold = await grant(store, 'again')
        fences.push(hold.fence)
        expect(await store.complete(hold, { retentionMs: 1 })).toBe('ok')
        await one.pool.query('UPDATE webhook_inbox SET updated_at = updated_at - 2000')
        expect(await store.purge(10)).toBe(1)
      }
      expect(fences).toEqual(fences.toSorted((a, b) => a - b))
      expect(new Set(fences).size).toBe(6)
      await one.close()
      await two.close()
    })

    it('writes nothing for 1000 copies of a completed delivery', async () => {
      const url = server.url(await server.createDatabase())
      const { store, pool, close } = await openStore(url)
      const hold = await grant(store, 'done')
      await store.complete(hold, { retentionMs: 60_000, result: new Uint8Array([1]) })
      await claimOne(store, 'done') // hint bits and the like
      const written = async () => {
        const { rows } = await pool.query<{ bytes: string }>(
          `SELECT pg_current_wal_insert_lsn() - '0/0' AS bytes`,
        )
        return Number(rows[0]?.bytes)
      }
      const rounds: number[] = []
      for (let round = 0; round < 10; round++) {
        const before = await written()
        await Promise.all(Array.from({ length: 100 }, () => claimOne(store, 'done')))
        rounds.push((await written()) - before)
      }
      // A server that others use too may write in a round or two.
      expect(rounds.filter((bytes) => bytes === 0).length).toBeGreaterThanOrEqual(8)
      await close()
    })
  })
}
