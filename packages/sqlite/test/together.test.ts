import { createReceiver } from '@webhook-inbox/core'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { describe, expect, it, vi } from 'vitest'
import { claimOne, entryOf, grant, keyOf, kinds, rejectionOf } from './support.ts'

describe.each(kinds)('changes of one turn on %s', (_, { open }) => {
  function counted() {
    const database = open(':memory:')
    const store = sqliteStore({ database })
    const exec = vi.spyOn(database, 'exec')
    const commits = (): number => exec.mock.calls.filter(([sql]) => sql === 'COMMIT').length
    return { database, store, commits }
  }

  it('share a transaction', async () => {
    const { database, store, commits } = counted()
    const ids = Array.from({ length: 50 }, (_, index) => `d-${index}`)
    const results = await store.claim(ids.map((id) => entryOf(id, { token: id })))
    expect(commits()).toBe(1)
    const answers = await Promise.all(
      results.map((result, index) => {
        if (result.status !== 'claimed') throw new Error(result.status)
        const id = ids[index] ?? ''
        const hold = { key: keyOf(id), token: id, fence: result.fence }
        return index % 2 === 0
          ? store.complete(hold, { retentionMs: 60_000 })
          : store.fail(hold, { code: 'x', retentionMs: 60_000, retryInMs: 0 })
      }),
    )
    expect(new Set(answers)).toEqual(new Set(['ok']))
    expect(commits()).toBe(2)
    expect(await store.stats()).toMatchObject({ states: { completed: 25, failed: 25 } })
    database.close()
  })

  it('the items of a request are claimed in one, and completed in one', async () => {
    const { database, store, commits } = counted()
    const receiver = createReceiver({
      provider: 'auth0-logs',
      secret: 's',
      store,
      handler: () => {},
    })
    const logs = Array.from({ length: 30 }, (_, index) => ({
      log_id: `l-${index}`,
      data: { type: 's' },
    }))
    const request = {
      method: 'POST',
      url: '/',
      headers: { authorization: 's' },
      body: new TextEncoder().encode(JSON.stringify(logs)),
    }
    expect(await receiver.receive(request, undefined)).toMatchObject({ status: 'completed' })
    expect(commits()).toBe(2)
    expect(await store.stats()).toMatchObject({ states: { completed: 30 } })
    database.close()
  })

  it('do not suffer for one among them that cannot be made', async () => {
    const { database, store } = counted()
    const [small, big, last] = [
      await grant(store, 'small'),
      await grant(store, 'big'),
      await grant(store, 'last'),
    ]
    database.exec('PRAGMA max_page_count = 20')
    const retentionMs = 60_000
    const [first, error, third] = await Promise.all([
      store.complete(small, { retentionMs }),
      rejectionOf(store.complete(big, { retentionMs, result: new Uint8Array(200_000) })),
      store.complete(last, { retentionMs }),
    ])
    expect([first, third]).toEqual(['ok', 'ok'])
    expect(error).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE', cause: expect.any(Error) })
    expect(await claimOne(store, 'small')).toMatchObject({ status: 'completed' })
    expect(await claimOne(store, 'big')).toMatchObject({ status: 'processing' })
    expect(database.inTransaction ?? database.isTransaction).toBe(false)
    database.close()
  })

  it('are none when the transaction cannot be committed', async () => {
    const { database, store } = counted()
    const holds = [await grant(store, 'a'), await grant(store, 'b')]
    const exec = database.exec.bind(database)
    vi.spyOn(database, 'exec').mockImplementation((sql) => {
      if (sql === 'COMMIT') throw new Error('disk I/O error')
      return exec(sql)
    })
    const errors = await Promise.all(
      holds.map((hold) => rejectionOf(store.complete(hold, { retentionMs: 60_000 }))),
    )
    for (const error of errors) expect(error).toMatchObject({ code: 'ERR_STORE_UNAVAILABLE' })
    vi.restoreAllMocks()
    for (const id of ['a', 'b'])
      expect(await claimOne(store, id)).toMatchObject({ status: 'processing' })
    database.close()
  })
})
