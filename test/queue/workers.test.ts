// Workers as processes: killed, paused, and given what kills them.
import { afterAll, beforeAll, describe, it } from 'vitest'
import { runManyWorkers } from './many-workers.ts'
import { kinds, type Target, targets } from './places.ts'
import { entryOf, killLeftWorkers, settled, startWorker } from './processes.ts'
import { openPlace } from './stores.ts'

for (const kind of kinds) {
  describe(`on ${kind}`, () => {
    let target: Target
    beforeAll(async () => {
      target = await targets[kind]()
    })
    afterAll(async () => {
      killLeftWorkers()
      await target?.stop()
    })

    it('a paused worker is aborted, and settles nothing that another has taken over', async ({
      expect,
    }) => {
      const address = await target.newAddress()
      const place = await openPlace(kind, address)
      const { key } = entryOf('d')
      const paused = await startWorker({ kind, address, leaseMs: 700 })
      await place.store.claim([entryOf('d', 'wait')])
      await expect.poll(() => paused.told.some(({ type }) => type === 'handler')).toBe(true)
      paused.child.kill('SIGSTOP')
      const take = () =>
        place.store.take({ limit: 1, leaseMs: 60_000, maxAttempts: 8, deadRetentionMs: 1000 })
      let [taken] = await take()
      await expect
        .poll(
          async () => {
            ;[taken] = taken === undefined ? await take() : [taken]
            return taken?.attempt
          },
          { timeout: 40_000 },
        )
        .toBe(2)
      paused.child.kill('SIGCONT')
      await expect
        .poll(() => paused.told.find(({ type }) => type === 'aborted')?.reason, { timeout: 40_000 })
        .toBe('lease_lost')
      await expect
        .poll(() => paused.told.some(({ type }) => type === 'claim_lost'), { timeout: 40_000 })
        .toBe(true)
      expect(await place.store.get(key)).toMatchObject({ state: 'processing', attempt: 2 })
      if (taken === undefined) throw new Error('Nobody took over.')
      expect(await place.store.complete(taken.hold, { retentionMs: 60_000 })).toBe('ok')
      expect(await place.store.get(key)).toMatchObject({ state: 'completed', attempt: 2 })
      paused.kill()
      await paused.died
      await place.close()
    }, 120_000)

    it('a delivery that kills its process is dead in the end, and the others are done', async ({
      expect,
    }) => {
      const address = await target.newAddress()
      const place = await openPlace(kind, address)
      const others = Array.from({ length: 12 }, (_, index) => `other-${index}`)
      await place.store.claim([
        entryOf('poison', 'die'),
        ...others.map((id) => entryOf(id, 'rest')),
        entryOf('poison too', 'die'),
      ])
      for (let deaths = 0; deaths < 30; deaths++) {
        const worker = await startWorker({ kind, address, leaseMs: 400, maxAttempts: 4 })
        const end = await Promise.race([worker.died, settled(place.store, 15_000)])
        worker.kill()
        await worker.died
        if (end === true) break
      }
      for (const id of ['poison', 'poison too']) {
        const record = await place.store.get(entryOf(id).key)
        expect(record).toMatchObject({ state: 'dead', code: 'attempts_exhausted', attempt: 4 })
      }
      for (const id of others) {
        const record = await place.store.get(entryOf(id).key)
        expect(record?.state).toBe('completed')
        // Two owners at most are lost with it by chance; then those that are suspected run alone.
        expect(record?.attempt).toBeLessThanOrEqual(4)
      }
      await place.close()
    }, 150_000)

    it('each of many deliveries is done once, however many workers are killed', async ({
      expect,
    }) => {
      await runManyWorkers(expect, {
        kind,
        address: await target.newAddress(),
        deliveries: 1000,
        workers: 3,
        kills: 4,
        leaseMs: 1500,
      })
    }, 200_000)
  })
}
