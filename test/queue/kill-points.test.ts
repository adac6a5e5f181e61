// A process is killed at every step of receiving and of working: what was answered 2xx is done in the end, and with
// completeIn nothing is done twice.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createInbox, createWorker } from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'
import { afterAll, beforeAll, describe, type ExpectStatic, it } from 'vitest'
import { kinds, type Target, targets } from './places.ts'
import { openPlace, type StoreKind } from './stores.ts'

const secret = 'a secret of this test'
const victim = fileURLToPath(new URL('./victim.ts', import.meta.url))

// Each starts processes of its own, and many run at once.
const limit = { timeout: 150_000 }

const receivePoints = ['before claim', 'after claim', 'after answer'] as const
/** And how many effects there are in the end: with completeIn one; without it one more when it died in between. */
const workPoints: Readonly<Record<string, number>> = {
  'before take': 1,
  'after take': 1,
  'in handler': 1,
  'before renew': 1,
  'after renew': 1,
  'before commit': 1,
  'after commit': 1,
  'after effect': 2,
  'before complete': 2,
  'after complete': 1,
  'before fail': 1,
  'after fail': 1,
  'before release': 1,
  'after release': 1,
}

const deliveryId = '72d3162e-cc78-11e3-81ab-4c9367dc0958'

/** A place of one test, and the processes that work on it. */
async function openScene(kind: StoreKind, target: Target) {
  const address = await target.newAddress()
  const place = await openPlace(kind, address)

  function start(role: 'receive' | 'work', point: string): ChildProcess {
    return fork(victim, [kind, address, role, point, secret], {
      execArgv: ['--conditions=@webhook-inbox/source'],
    })
  }

  async function state(): Promise<string | undefined> {
    const record = await place.store.get({ provider: 'github', endpoint: '', deliveryId })
    return record?.state
  }

  return {
    place,
    start,
    state,

    /** Sends the delivery to a receiver that is to die at the point; undefined when it gave no answer. */
    async deliver(point: string): Promise<number | undefined> {
      const child = start('receive', point)
      const died = once(child, 'exit')
      const [{ port }] = await once(child, 'message')
      const request = await signRequest('github', { secret, event: 'push', deliveryId })
      const answer = await fetch(`http://127.0.0.1:${port}/`, request).then(
        ({ status }) => status,
        () => undefined,
      )
      if (point === 'never') child.disconnect()
      await died
      return answer
    },

    /** Lets a worker that lives run until the delivery is completed; answers how often its effect was written. */
    async finish(expect: ExpectStatic): Promise<number> {
      const inbox = createInbox({ store: place.store, onError: () => {} })
      const worker = createWorker({
        inbox,
        purge: false,
        pollMs: 50,
        handler: (webhook) => place.effectAndComplete(webhook),
      })
      worker.start()
      await expect.poll(state, { timeout: 60_000 }).toBe('completed')
      await worker.stop()
      return place.effectsOf(deliveryId)
    },
  }
}

for (const kind of kinds) {
  describe.concurrent(`on ${kind}`, () => {
    let target: Target
    beforeAll(async () => {
      target = await targets[kind]()
    })
    afterAll(() => target?.stop())

    it.for(receivePoints)(
      'a receiver that dies %s loses nothing',
      limit,
      async (point, { expect }) => {
        const { place, deliver, finish } = await openScene(kind, target)
        const answer = await deliver(point)
        expect(answer).toBe(point === 'after answer' ? 202 : undefined)
        // A sender that had no answer sends it again.
        if (answer === undefined) expect(await deliver('never')).toBe(202)
        expect(await finish(expect)).toBe(1)
        await place.close()
      },
    )

    it.for(Object.entries(workPoints))(
      'a worker that dies %s loses nothing',
      limit,
      async ([point, effects], { expect }) => {
        const { place, start, state, deliver, finish } = await openScene(kind, target)
        expect(await deliver('never')).toBe(202)
        const child = start('work', point)
        const died = once(child, 'exit')
        if (point.endsWith('release')) {
          await expect.poll(state, { timeout: 60_000 }).toBe('processing')
          child.send('stop')
        }
        expect(await died).toEqual([null, 'SIGKILL'])
        expect(await finish(expect)).toBe(effects)
        await place.close()
      },
    )
  })
}
