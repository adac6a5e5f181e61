import { memoryStore, type Store } from '@webhook-inbox/core'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { describe, expect, it } from 'vitest'
import { claimOne, rejectionOf } from './support.ts'

// Typed as unknown: what JavaScript users can hand in, the compiler refuses.
const makers: readonly (readonly [string, (now: () => unknown) => Store])[] = [
  ['memoryStore', (now) => Reflect.apply(memoryStore, undefined, [{ now }])],
  ['sqliteStore', (now) => Reflect.apply(sqliteStore, undefined, [{ path: ':memory:', now }])],
]

describe.each(makers)('the clock of %s', (name, make) => {
  it.each([
    ['NaN', Number.NaN],
    ['a Date', new Date()],
    ['a bigint', 1n],
    ['text', '1800000000000'],
    ['a time before 1970', -1],
    ['microseconds', 1_800_000_000_000_000],
    ['nothing', undefined],
  ])('that gives %s grants nothing', async (_, wrong) => {
    const store = make(() => wrong)
    expect(await rejectionOf(claimOne(store, 'd'))).toMatchObject({
      code: 'ERR_OPTION',
      message: `${name}: "now" must give epoch milliseconds, a number as of Date.now().`,
    })
    await store.close()
  })

  it('may go back, jump and have fractions: one holder at a time, and fences that grow', async () => {
    let nowMs = 1_800_000_000_000.9
    const store = make(() => nowMs)
    const fences: number[] = []
    for (const jumpMs of [0, 365 * 86_400_000, -700 * 86_400_000, 5, -5]) {
      nowMs += jumpMs
      const id = `d${fences.length}`
      const result = await claimOne(store, id)
      if (result.status !== 'claimed') throw new Error(result.status)
      expect((await claimOne(store, id)).status).toBe('processing')
      fences.push(result.fence)
    }
    expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b))
    expect(fences.every(Number.isSafeInteger)).toBe(true)
    await store.close()
  })
})
