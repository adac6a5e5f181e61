import { describe, expect, it } from 'vitest'
import { allEntries } from './keys.ts'
import { tryMutations } from './mutations.ts'

const schemes = allEntries.flatMap((entry) =>
  [entry.signature].flat().map(({ scheme }, index) => ({ name: entry.name, scheme, index, entry })),
)

describe('ten thousand changes of one byte each, of the body and of every header that is signed', () => {
  it.each(schemes)(
    '$name ($scheme $index): none is accepted',
    async ({ entry, index }) => {
      const { tried, accepted } = await tryMutations(entry, index, 10_000, 1)
      expect(accepted).toEqual([])
      expect(tried).toBeGreaterThan(5000)
    },
    600_000,
  )
})
