import { PermanentError } from '@webhook-inbox/core'
import { type AdapterGuarantee, keyOf } from './harness.ts'

/** What a run's end makes of its delivery. */
export const outcomeGuarantees = {
  async A30({ serve, expect }) {
    const site = await serve({
      async run() {
        throw new Error('the handler broke')
      },
    })
    const reply = await site.send()
    expect({ status: reply.status, state: reply.state }).toEqual({ status: 500, state: 'failed' })
    expect((await site.observed.store.get(keyOf()))?.state).toEqual('failed')
    await site.send()
    expect(site.runs.length).toEqual(2)
  },

  async A31({ serve, expect }) {
    const site = await serve({
      async run() {
        throw new PermanentError('never')
      },
    })
    const reply = await site.send()
    expect({ failed: reply.status >= 400, state: reply.state }).toEqual({
      failed: true,
      state: 'dead',
    })
    expect((await site.observed.store.get(keyOf()))?.state).toEqual('dead')
    expect((await site.send()).status).toEqual(202)
    expect(site.runs.length).toEqual(1)
  },

  async A32({ serve, expect }) {
    const site = await serve({
      async run(webhook) {
        if (webhook.id === 'retryable') webhook.fail()
        else webhook.fail(new Error('no use'), { retryable: false })
      },
    })
    const retryable = await site.send({ id: 'retryable' })
    expect({
      status: retryable.status,
      state: retryable.state,
      type: retryable.headers.get('content-type'),
      wait: Number(retryable.headers.get('retry-after')) >= 1,
    }).toEqual({ status: 503, state: 'failed', type: 'application/problem+json', wait: true })
    const final = await site.send({ id: 'final' })
    expect({
      status: final.status,
      state: final.state,
      type: final.headers.get('content-type'),
    }).toEqual({ status: 422, state: 'dead', type: 'application/problem+json' })
    await site.send({ id: 'retryable' })
    await site.send({ id: 'final' })
    expect(site.runs.map(({ id }) => id)).toEqual(['retryable', 'final', 'retryable'])
  },

  async A33({ serve, expect }) {
    const thrown: readonly unknown[] = [new Error('the handler broke'), new PermanentError('never')]
    const site = await serve({
      options: {
        handler: async (webhook) => {
          if (webhook.id === 'throws') throw thrown[0]
          if (webhook.id === 'permanent') throw thrown[1]
        },
      },
    })
    const good = await site.send({ id: 'returns' })
    expect({ status: good.status, state: good.state, body: JSON.parse(good.text) }).toEqual({
      status: 200,
      state: 'completed',
      body: { status: 'completed', deliveryId: 'returns' },
    })
    const failed = await site.send({ id: 'throws' })
    expect({ status: failed.status, state: failed.state }).toEqual({
      status: 500,
      state: 'failed',
    })
    const dead = await site.send({ id: 'permanent' })
    expect({ status: dead.status, state: dead.state }).toEqual({ status: 422, state: 'dead' })
    expect(site.errors.map((error) => thrown.indexOf(error))).toEqual([0, 1])
    expect(failed.text.includes('broke') || dead.text.includes('never')).toEqual(false)
  },

  async A34({ serve, expect }) {
    const statuses = [200, 201, 202, 204, 302, 303, 304]
    const site = await serve({ run: async ({ id }) => ({ status: Number(id) }) })
    for (const status of statuses) {
      const reply = await site.send({ id: String(status) })
      expect({ status: reply.status, state: reply.state }).toEqual({ status, state: 'completed' })
      expect((await site.send({ id: String(status) })).status).toEqual(200)
    }
    expect(site.runs.length).toEqual(statuses.length)
  },

  async A35({ serve, expect }) {
    const statuses = [400, 410, 413, 415, 422]
    const site = await serve({ run: async ({ id }) => ({ status: Number(id), body: 'no' }) })
    for (const status of statuses) {
      const reply = await site.send({ id: String(status) })
      expect({ status: reply.status, state: reply.state, text: reply.text }).toEqual({
        status,
        state: 'dead',
        text: 'no',
      })
      expect((await site.send({ id: String(status) })).status).toEqual(202)
    }
    expect(site.runs.length).toEqual(statuses.length)
  },

  async A36({ serve, expect }) {
    const statuses = [401, 403, 404, 405, 409, 429, 500, 502, 503]
    const site = await serve({ run: async ({ id }) => ({ status: Number(id), body: 'later' }) })
    for (const status of statuses) {
      for (let round = 0; round < 2; round++) {
        const reply = await site.send({ id: String(status) })
        expect({ status: reply.status, state: reply.state, text: reply.text }).toEqual({
          status,
          state: 'failed',
          text: 'later',
        })
      }
    }
    expect(site.runs.length).toEqual(2 * statuses.length)
    const unrouted = site.events.flatMap((event) =>
      event.type === 'no_handler' ? [event.status] : [],
    )
    expect(unrouted).toEqual([404, 404, 405, 405])
  },

  async A37({ serve, expect }) {
    const site = await serve({ respond: async () => undefined })
    for (let round = 0; round < 2; round++) {
      const reply = await site.send()
      expect({ refused: reply.status >= 400, state: reply.state }).toEqual({
        refused: true,
        state: 'failed',
      })
    }
    expect(site.runs.length).toEqual(2)
    expect((await site.observed.store.get(keyOf()))?.state).toEqual('failed')
  },

  async A38({ serve, expect }) {
    const site = await serve({
      options: {
        settleBy(status) {
          if (status === 409) return 'complete'
          if (status === 201) return 'retry'
          return status === 401 ? 'dead' : undefined
        },
      },
      run: async ({ id }) => ({ status: Number(id) }),
    })
    const states: Record<string, string | null> = {}
    for (const status of ['409', '201', '401', '200', '500']) {
      states[status] = (await site.send({ id: status })).state
    }
    expect(states).toEqual({
      '409': 'completed',
      '201': 'failed',
      '401': 'dead',
      '200': 'completed',
      '500': 'failed',
    })
    // A 2xx would end the sender's retries although the work is to be done again.
    expect((await site.send({ id: '201' })).status).toEqual(503)
  },

  async A39({ serve, expect }) {
    const body = '{"own":"answer ☕"}'
    const site = await serve({
      run: async () => ({
        status: 201,
        headers: {
          'content-type': 'application/vnd.own+json',
          'x-own': 'kept',
          'cache-control': 'no-store',
        },
        body,
      }),
    })
    const reply = await site.send()
    expect({
      status: reply.status,
      type: reply.headers.get('content-type')?.split(';')[0],
      own: reply.headers.get('x-own'),
      cache: reply.headers.get('cache-control'),
      state: reply.state,
      text: reply.text,
    }).toEqual({
      status: 201,
      type: 'application/vnd.own+json',
      own: 'kept',
      cache: 'no-store',
      state: 'completed',
      text: body,
    })
  },
} as const satisfies Record<string, AdapterGuarantee>
