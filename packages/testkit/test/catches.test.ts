// The kit is worth what it catches: broken stores and adapters, and the guarantee that has to find each.
import { isDeepStrictEqual } from 'node:util'
import { githubWebhook, memoryStore, type Store } from '@webhook-inbox/core'
import {
  type AdapterHarness,
  adapterGuarantees,
  type Runner,
  storeGuarantees,
} from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'

/** Runs what a suite registers and answers the numbers that failed. */
async function failuresOf(register: (runner: Runner) => void): Promise<string[]> {
  const tests: (readonly [string, () => Promise<void>])[] = []
  register({
    describe: (_name, body) => body(),
    it: (name, body) => void tests.push([name.split(' ', 1)[0] ?? '', body]),
    expect: (actual) => ({
      toEqual(expected) {
        if (!isDeepStrictEqual(actual, expected)) throw new Error('not equal')
      },
    }),
  })
  const failed: string[] = []
  for (const [id, body] of tests) await body().catch(() => void failed.push(id))
  return failed
}

const brokenStores: readonly (readonly [string, string, (store: Store) => Partial<Store>])[] = [
  [
    'grants every claim',
    'S1',
    (store) => ({
      claim: (entries) =>
        Promise.all(
          entries.map(async (entry, index) => {
            const { key } = entry
            const other = { ...key, deliveryId: `${key.deliveryId} ${index} ${Math.random()}` }
            const [result] = await store.claim([{ ...entry, key: other }])
            if (result === undefined) throw new Error('no result')
            return result
          }),
        ),
    }),
  ],
  [
    'does not know its own caller',
    'S3',
    (store) => ({
      claim: (entries) =>
        store.claim(entries.map((entry) => ({ ...entry, token: `${Math.random()}` }))),
    }),
  ],
  [
    'has fences that stand still',
    'S13',
    (store) => ({
      claim: async (entries) =>
        (await store.claim(entries)).map((result) =>
          result.status === 'claimed' ? { ...result, fence: 1 } : result,
        ),
    }),
  ],
  ['lets anybody renew', 'S8', () => ({ renew: async () => 'ok' })],
  [
    'completes by key alone',
    'S8',
    (store) => ({
      async complete(hold, options) {
        const record = await store.get(hold.key)
        return record?.fence === hold.fence ? store.complete(hold, options) : 'ok'
      },
    }),
  ],
  [
    'keeps no lease for a holder that came late',
    'S9',
    (store) => ({
      async complete(hold, options) {
        const record = await store.get(hold.key)
        return record?.abandoned === true ? 'lost' : store.complete(hold, options)
      },
    }),
  ],
  [
    'forgets the backoff',
    'S20',
    (store) => ({
      fail: (hold, options) =>
        store.fail(hold, 'dead' in options ? options : { ...options, retryInMs: 0 }),
    }),
  ],
  [
    'spends an attempt on release',
    'S24',
    (store) => ({
      release: (hold) =>
        store.fail(hold, { code: 'released', retentionMs: 1_000_000, retryInMs: 0 }),
    }),
  ],
  [
    'abandons any claim',
    'S25',
    (store) => ({
      async abandon(key) {
        const record = await store.get(key)
        if (record?.state !== 'processing') return
        const token = record.fingerprint ?? 'lost-reply'
        await store.release({ key, token, fence: record.fence })
      },
    }),
  ],
  [
    'compares no fingerprints',
    'S26',
    (store) => ({
      claim: async (entries) =>
        (await store.claim(entries)).map((result) => ({ ...result, fingerprintMatches: true })),
    }),
  ],
  ['purges without a limit', 'S31', (store) => ({ purge: () => store.purge(1_000_000) })],
  [
    'takes without a limit',
    'S40',
    (store) => ({ take: (options) => store.take({ ...options, limit: 1000 }) }),
  ],
  [
    'joins the parts of a key',
    'S49',
    (store) => ({
      claim: (entries) =>
        store.claim(
          entries.map((entry) => ({
            ...entry,
            key: {
              provider: '',
              endpoint: '',
              deliveryId: `${entry.key.provider}:${entry.key.endpoint}:${entry.key.deliveryId}`,
            },
          })),
        ),
    }),
  ],
  [
    'does not tell capitals apart',
    'S50',
    (store) => ({
      claim: (entries) =>
        store.claim(
          entries.map((entry) => ({
            ...entry,
            key: { ...entry.key, deliveryId: entry.key.deliveryId.toLowerCase() },
          })),
        ),
    }),
  ],
  [
    'pages by offset',
    'S52',
    (store) => ({
      async list(query = {}) {
        const offset = Number(query.cursor ?? 0)
        const { records } = await store.list({ limit: 1000 })
        const limit = query.limit ?? 100
        const page = { records: records.slice(offset, offset + limit) }
        return offset + limit < records.length ? { ...page, next: String(offset + limit) } : page
      },
    }),
  ],
  [
    'says already to any settlement of a settled record',
    'S18',
    (store) => ({
      async fail(hold, options) {
        const answer = await store.fail(hold, options)
        const state = (await store.get(hold.key))?.state
        return answer === 'lost' && state === 'failed' ? 'already' : answer
      },
    }),
  ],
  [
    'says already to a failure of what was buried meanwhile',
    'S64',
    (store) => ({
      async fail(hold, options) {
        const answer = await store.fail(hold, options)
        const state = (await store.get(hold.key))?.state
        return answer === 'lost' && state === 'dead' ? 'already' : answer
      },
    }),
  ],
  [
    'takes any limit for one',
    'S65',
    (store) => ({
      purge: (limit) => (limit > 0 ? store.purge(Math.min(limit, 1_000_000)) : Promise.resolve(0)),
    }),
  ],
  [
    'counts completed records that it does not list',
    'S66',
    (store) => ({
      async list(query) {
        const page = await store.list(query)
        return { ...page, records: page.records.filter(({ state }) => state !== 'completed') }
      },
    }),
  ],
  [
    'takes any value for a transaction',
    'S62',
    (store) => ({ complete: (hold, options) => store.complete(hold, options) }),
  ],
]

describe('a store that', () => {
  it.each(brokenStores)('%s fails %s', async (_fault, id, breakStore) => {
    const failed = await failuresOf((runner) =>
      storeGuarantees(runner, {
        name: 'broken',
        async create({ now }) {
          const store = memoryStore({ now })
          return { store: { ...store, ...breakStore(store) }, close: () => store.close() }
        },
      }),
    )
    expect(failed).toContain(id)
  })

  it('is in order fails nothing', async () => {
    const failed = await failuresOf((runner) =>
      storeGuarantees(runner, {
        name: 'good',
        async create({ now }) {
          const store = memoryStore({ now })
          return { store, close: () => store.close() }
        },
      }),
    )
    expect(failed).toEqual([])
  })
})

type Handle = (request: Request) => Promise<Response>

const brokenAdapters: readonly (readonly [string, string, (handle: Handle) => Handle])[] = [
  [
    'leaves out the status header',
    'A1',
    (handle) => async (request) => {
      const { status, body } = await handle(request)
      return new Response(body, { status })
    },
  ],
  [
    'sends the body on as text',
    'A13',
    (handle) => async (request) =>
      handle(new Request(request, { method: 'POST', body: `${await request.text()} ` })),
  ],
  [
    'answers before the delivery is settled',
    'A40',
    (handle) => async (request) => {
      const answer = handle(request)
      const early = new Promise<Response>((resolve) => {
        setTimeout(() => resolve(new Response('early')), 1)
      })
      return Promise.race([answer, early])
    },
  ],
  [
    'reports errors with the request in them',
    'A15',
    (handle) => async (request) => {
      const answer = await handle(request)
      if (answer.status !== 401) return answer
      const { status, headers } = answer
      return new Response(JSON.stringify([...request.headers]), { status, headers })
    },
  ],
]

describe('an adapter that', () => {
  it.each(brokenAdapters)('%s fails %s', async (_fault, id, breakHandle) => {
    const harness: AdapterHarness = {
      name: 'broken',
      features: [],
      async serve({ options, mount }) {
        const { handler } = options
        if (handler === undefined) throw new Error('A fetch handler needs a handler.')
        const path = mount === 'path' ? { path: '/webhooks/github' } : {}
        const handle = githubWebhook({ ...options, ...path, handler })
        return {
          url: 'http://hooks.example.test',
          fetch: breakHandle(handle),
          close: async () => {},
        }
      },
    }
    const failed = await failuresOf((runner) =>
      adapterGuarantees(
        { ...runner, it: (name, body) => name.startsWith(`${id} `) && runner.it(name, body) },
        harness,
      ),
    )
    expect(failed).toEqual([id])
  })
})
