import { type ClaimedDelivery, memoryStore, PermanentError, type Store } from '@webhook-inbox/core'
import type { AdapterHarness, AdapterSetup } from '@webhook-inbox/testkit'
import { beforeAll, describe, expect, it } from 'vitest'
import { adapters } from './all.ts'
import { buildCorpus, type CorpusEntry, maxBodyBytes, secret } from './corpus.ts'
import { exchange, type PlainAnswer } from './exchange.ts'
import { webhookPath } from './server.ts'

/** Answers by name, with the deliveries that ran. */
interface Outcome {
  readonly answers: Readonly<Record<string, PlainAnswer>>
  readonly runs: readonly string[]
}

function setupOf(mount: AdapterSetup['mount'], runs: string[]): AdapterSetup {
  const memory = memoryStore({ now: () => 1_764_547_200_000 })
  const store: Store = {
    ...memory,
    async claim(entries) {
      if (entries[0]?.key.deliveryId === 'store-down') throw new Error('the store is down')
      return memory.claim(entries)
    },
  }
  const handler = async (webhook: ClaimedDelivery): Promise<void> => {
    const { id, event, action, endpoint, rawBody, payload } = webhook
    const bytes = Buffer.from(rawBody).toString('hex')
    runs.push(JSON.stringify({ id, event, action, endpoint, bytes, payload }))
    if (event === 'throws') throw new Error('broken')
    if (event === 'rejects') throw new PermanentError('never')
    if (event === 'fails') webhook.fail()
    if (event === 'fails-dead') webhook.fail(undefined, { retryable: false })
  }
  return {
    mount,
    respond: async () => ({ status: 200, body: 'behind' }),
    options: {
      store,
      handler,
      maxBodyBytes,
      secret({ headers }) {
        if (headers['x-tenant'] === 'broken') throw new Error('the vault is closed')
        return headers['x-tenant'] === 'unknown' ? undefined : secret
      },
      events: ['push', 'issues.opened', '__proto__', 'throws', 'rejects', 'fails', 'fails-dead'],
      retry: { inlineBackoffMs: 10_000 },
    },
  }
}

async function run(
  harness: AdapterHarness,
  mount: AdapterSetup['mount'],
  corpus: readonly CorpusEntry[],
): Promise<Outcome> {
  const runs: string[] = []
  const answers: Record<string, PlainAnswer> = {}
  const fixture = await harness.serve(setupOf(mount, runs))
  try {
    for (const { name, request } of corpus) answers[name] = await exchange(fixture, request)
  } finally {
    await fixture.close()
  }
  return { answers, runs }
}

describe('one corpus of requests', () => {
  let corpus: readonly CorpusEntry[] = []
  let atRoute: readonly CorpusEntry[] = []

  beforeAll(async () => {
    corpus = await buildCorpus()
    // In route mode the router has the word on methods and paths.
    atRoute = corpus.filter(
      ({ request }) => request.method === 'POST' && request.path === webhookPath,
    )
  })

  for (const mount of ['path', 'route'] as const) {
    it(`is answered alike by every adapter on a ${mount} mount`, async () => {
      const sent = mount === 'path' ? corpus : atRoute
      const outcomes = await Promise.all(adapters.map((harness) => run(harness, mount, sent)))
      const [reference] = outcomes
      const statuses = sent.map(({ name }) => [name, reference?.answers[name]?.status])
      expect(statuses).toEqual(sent.map(({ name, status }) => [name, status]))
      for (const [index, outcome] of outcomes.entries()) {
        expect({ adapter: adapters[index]?.name, ...outcome }).toEqual({
          adapter: adapters[index]?.name,
          ...reference,
        })
      }
    })
  }
})
