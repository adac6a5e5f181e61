import { createBatch, storeUnavailable } from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { gate } from './support.ts'

type Entry = { readonly key: string; readonly value?: number }

function recording(
  options: { hold?: Promise<void>; fail?: (entries: readonly Entry[]) => unknown } = {},
) {
  const sent: string[][] = []
  const send = async (entries: readonly Entry[]): Promise<readonly string[]> => {
    sent.push(entries.map(({ key }) => key))
    await options.hold
    const error = options.fail?.(entries)
    if (error !== undefined) throw error
    return entries.map(({ key }) => `done ${key}`)
  }
  return { sent, send }
}

const keyOf = ({ key }: Entry): string => key

describe('calls of one turn', () => {
  it('travel in one batch, sorted by key, and get their own answers', async () => {
    const { sent, send } = recording()
    const call = createBatch({ send, keyOf, timeoutMs: 1000 })
    expect(await Promise.all(['c', 'a', 'b'].map((key) => call({ key })))).toEqual([
      'done c',
      'done a',
      'done b',
    ])
    expect(sent).toEqual([['a', 'b', 'c']])
  })

  it('are told apart from the next turn', async () => {
    const { sent, send } = recording()
    const call = createBatch({ send, keyOf, timeoutMs: 1000 })
    await call({ key: 'a' })
    await call({ key: 'b' })
    expect(sent).toEqual([['a'], ['b']])
  })

  it('gather while enough batches are under way', async () => {
    const held = gate()
    const { sent, send } = recording({ hold: held.opened })
    const call = createBatch({ send, keyOf, timeoutMs: 1000, maxInFlight: 1 })
    const first = call({ key: 'a' })
    await new Promise(setImmediate)
    const rest = ['b', 'c'].map((key) => call({ key }))
    await new Promise(setImmediate)
    const late = call({ key: 'd' })
    expect(sent).toEqual([['a']])
    held.open()
    await Promise.all([first, ...rest, late])
    expect(sent).toEqual([['a'], ['b', 'c', 'd']])
  })

  it('are split by number and by size; what is larger than a batch goes alone', async () => {
    const { sent, send } = recording()
    const call = createBatch({
      send,
      keyOf,
      timeoutMs: 1000,
      maxEntries: 3,
      maxBytes: 10,
      sizeOf: ({ value = 0 }: Entry) => value,
    })
    const entries = [
      ['a', 4],
      ['b', 4],
      ['c', 4],
      ['d', 50],
      ['e', 1],
      ['f', 1],
      ['g', 1],
    ] as const
    await Promise.all(entries.map(([key, value]) => call({ key, value })))
    expect(sent.flat().sort()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g'])
    expect(sent.every((batch) => batch.length <= 3)).toBe(true)
    expect(sent).toContainEqual(['d'])
  })
})

describe('calls with one key', () => {
  it('go with the next batch where they cannot be merged', async () => {
    const { sent, send } = recording()
    const call = createBatch({ send, keyOf, timeoutMs: 1000 })
    await Promise.all([call({ key: 'a' }), call({ key: 'a' }), call({ key: 'b' })])
    expect(
      sent.map((batch) => batch.filter((key) => key === 'a').length).every((count) => count <= 1),
    ).toBe(true)
    expect(sent.flat().sort()).toEqual(['a', 'a', 'b'])
  })

  it('are answered from the first one where they can', async () => {
    const { sent, send } = recording()
    const call = createBatch<Entry, string>({
      send,
      keyOf,
      merge: (result, later) => `${result}, copy ${later.value}`,
      timeoutMs: 1000,
    })
    const answers = await Promise.all([1, 2, 3].map((value) => call({ key: 'a', value })))
    expect(answers).toEqual(['done a', 'done a, copy 2', 'done a, copy 3'])
    expect(sent).toEqual([['a']])
  })

  it('are sent again where a merge gives no answer', async () => {
    const { sent, send } = recording()
    const call = createBatch<Entry, string>({
      send,
      keyOf,
      merge: () => undefined,
      timeoutMs: 1000,
    })
    expect(await Promise.all([call({ key: 'a' }), call({ key: 'a' })])).toEqual([
      'done a',
      'done a',
    ])
    expect(sent).toEqual([['a'], ['a']])
  })

  it('are all unavailable when the first is', async () => {
    const { send } = recording({ fail: () => storeUnavailable('down') })
    const call = createBatch<Entry, string>({
      send,
      keyOf,
      merge: (result) => result,
      timeoutMs: 1000,
    })
    const answers = await Promise.allSettled([call({ key: 'a' }), call({ key: 'a' })])
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })
})

describe('a batch that fails', () => {
  it('is unavailable as a whole when the store is', async () => {
    const { sent, send } = recording({ fail: () => storeUnavailable('down') })
    const call = createBatch({ send, keyOf, timeoutMs: 1000 })
    const answers = await Promise.allSettled(['a', 'b', 'c'].map((key) => call({ key })))
    expect(answers.every(({ status }) => status === 'rejected')).toBe(true)
    expect(sent).toHaveLength(1)
  })

  it('is halved until the entry that cannot be sent stands alone', async () => {
    const { send } = recording({
      fail: (entries) =>
        entries.some(({ key }) => key === 'c') ? new Error('bad row') : undefined,
    })
    const call = createBatch({ send, keyOf, timeoutMs: 1000 })
    const answers = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((key) => call({ key })))
    expect(answers.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
  })

  it('leaves the way free for those that come after', async () => {
    let down = true
    const { send } = recording({ fail: () => (down ? storeUnavailable('down') : undefined) })
    const call = createBatch({ send, keyOf, timeoutMs: 1000, maxInFlight: 1 })
    await expect(call({ key: 'a' })).rejects.toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' })
    down = false
    expect(await call({ key: 'a' })).toBe('done a')
  })
})

describe('an entry whose time is up', () => {
  it('is refused and never sent', async () => {
    const { sent, send } = recording()
    const call = createBatch({ send, keyOf, timeoutMs: 20 })
    const late = expect(call({ key: 'a' })).rejects.toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' })
    // Blocks the event loop until the caller's time is over.
    const until = performance.now() + 25
    while (performance.now() < until);
    await late
    expect(sent).toEqual([])
  })
})

describe('a batch that is never answered', () => {
  it('is given up, and keeps the place of nobody', async () => {
    let isSilent = true
    const call = createBatch<Entry, string>({
      send: (entries) => (isSilent ? new Promise(() => {}) : Promise.resolve(entries.map(keyOf))),
      keyOf,
      timeoutMs: 20,
      maxInFlight: 1,
    })
    await expect(call({ key: 'a' })).rejects.toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' })
    isSilent = false
    expect(await call({ key: 'b' })).toBe('b')
  })
})
