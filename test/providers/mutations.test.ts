import { describe, expect, it } from 'vitest'
import { allEntries } from './keys.ts'
import { tryMutations } from './mutations.ts'

const schemes = allEntries.flatMap((entry) =>
  [entry.signature].flat().map(({ scheme }, index) => ({ name: entry.name, scheme, index, entry })),
)

// Ten thousand of each are in mutations.long.test.ts.
describe('a request with one byte changed', () => {
  it.each(schemes)('$name ($scheme $index): is refused', async ({ entry, index }) => {
    const { tried, accepted } = await tryMutations(entry, index, 100, Date.now())
    expect(accepted).toEqual([])
    expect(tried).toBeGreaterThan(50)
  })
})
