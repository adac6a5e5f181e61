import { type ClaimedDelivery, memoryStore } from '@webhook-inbox/core'
import { type AdapterSetup, type SignedRequest, signRequest } from '@webhook-inbox/testkit'
import supertest from 'supertest'
import { beforeAll, describe, expect, it } from 'vitest'
import { adapters } from './all.ts'
import { onExpress4, onExpress5 } from './express.ts'
import { onKoa2, onKoa3 } from './koa.ts'
import { onNodeHttp } from './node-http.ts'
import { readExamples } from './payloads.ts'
import { webhookPath } from './server.ts'

const secret = "It's a Secret to Everybody"
const examples = readExamples()

function setupOf(runs: ClaimedDelivery[]): AdapterSetup {
  return {
    mount: 'route',
    options: {
      secret,
      store: memoryStore(),
      // A ping is a delivery like the others here.
      events: [...new Set(examples.map(({ event }) => event))],
      handler: (webhook) => void runs.push(webhook),
    },
    respond: async () => undefined,
  }
}

describe(`all ${examples.length} payloads of @octokit/webhooks-examples`, () => {
  let requests: readonly SignedRequest[] = []

  beforeAll(async () => {
    expect(examples.length).toBe(329)
    requests = await Promise.all(
      examples.map(({ event, payload }, index) =>
        signRequest('github', { secret, event, payload, deliveryId: `example-${index}` }),
      ),
    )
  })

  /** Sends every payload; each has to be answered 200. */
  async function deliver(send: (request: SignedRequest) => Promise<number>): Promise<void> {
    // In small groups: the machine's port range is not what is tested.
    for (let start = 0; start < requests.length; start += 16) {
      const group = requests.slice(start, start + 16)
      const statuses = await Promise.all(group.map(send))
      expect(new Set(statuses)).toEqual(new Set([200]))
    }
  }

  function expectEachOnce(runs: readonly ClaimedDelivery[]): void {
    expect(runs.length).toBe(329)
    const byId = new Map(runs.map((webhook) => [webhook.id, webhook]))
    for (const [index, { event, payload }] of examples.entries()) {
      const webhook = byId.get(`example-${index}`)
      expect(webhook?.event).toBe(event)
      expect(webhook?.payload).toEqual(payload)
    }
  }

  for (const harness of adapters) {
    it(`run once each on ${harness.name}`, async () => {
      const runs: ClaimedDelivery[] = []
      const fixture = await harness.serve(setupOf(runs))
      const send = async (request: SignedRequest): Promise<number> => {
        const target = fixture.url + webhookPath
        const response = await (fixture.fetch === undefined
          ? fetch(target, request)
          : fixture.fetch(new Request(target, request)))
        await response.arrayBuffer()
        return response.status
      }
      await deliver(send)
      await deliver(send)
      await fixture.close()
      expectEachOnce(runs)
    })
  }

  for (const harness of [onExpress4, onExpress5, onKoa2, onKoa3, onNodeHttp]) {
    it(`run once each on ${harness.name} through supertest`, async () => {
      const runs: ClaimedDelivery[] = []
      const agent = supertest(harness.app(setupOf(runs)))
      const send = async ({ headers, body }: SignedRequest): Promise<number> =>
        (await agent.post(webhookPath).set(headers).send(body)).status
      await deliver(send)
      await deliver(send)
      expectEachOnce(runs)
    })
  }
})
