import { createWorker, storeUnavailable } from '@webhook-inbox/core'
import { tally } from '../store/harness.ts'
import { type AdapterGuarantee, sharedInbox } from './harness.ts'

/** Deliveries that are stored first and run by a worker. */
export const queuedGuarantees = {
  async A54({ serve, expect }) {
    const { observed } = await serve()
    const inbox = sharedInbox({ observed })
    const { send, runs } = await serve({ inbox, options: { queue: true } })
    const first = await send()
    expect([first.status, first.state, JSON.parse(first.text)]).toEqual([
      202,
      'pending',
      { status: 'pending', deliveryId: 'd-1' },
    ])
    const copy = await send()
    expect([copy.status, copy.state]).toEqual([202, 'pending'])
    expect(runs.length).toEqual(0)
    const ran: string[] = []
    await createWorker({ inbox, handler: ({ id }) => void ran.push(id) }).drain()
    expect(ran).toEqual(['d-1'])
    const late = await send()
    expect([late.status, late.state]).toEqual([200, 'completed'])
    expect(runs.length).toEqual(0)
  },

  async A55({ serve, expect }) {
    const { observed } = await serve()
    const inbox = sharedInbox({ observed })
    const { send } = await serve({ inbox, options: { queue: true } })
    const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    await send({ id: 'bytes', body: bytes })
    await send({ id: 'form', form: true, payload: { text: 'é & = ☕' } })
    await send({ id: 'json', event: 'issues', payload: { action: 'opened', text: '☕' } })
    const seen: Record<string, unknown> = {}
    await createWorker({
      inbox,
      handler({ id, event, action, rawBody, payload, headers, attempt }) {
        const isJson = headers['content-type'] === 'application/json'
        seen[id] = [event, action, Array.from(rawBody), payload, isJson, attempt]
      },
    }).drain()
    const text = (value: string) => Array.from(new TextEncoder().encode(value))
    expect(seen.bytes).toEqual(['push', undefined, Array.from(bytes), undefined, true, 1])
    expect(seen.json).toEqual([
      'issues',
      'opened',
      text('{"action":"opened","text":"☕"}'),
      { action: 'opened', text: '☕' },
      true,
      1,
    ])
    const form = seen.form
    expect(Array.isArray(form) && [form[0], form[3], form[4]]).toEqual([
      'push',
      { text: 'é & = ☕' },
      false,
    ])
  },

  async A56({ serve, expect }) {
    const { send, observed, runs } = await serve({ options: { queue: true } })
    observed.intercept('claim', async () => {
      throw storeUnavailable('down')
    })
    const refused = await send()
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
    observed.intercept('claim', undefined)
    expect((await send()).status).toEqual(202)
    expect((await send({ id: 'd-2', secret: 'another' })).status).toEqual(401)
    expect((await send({ id: 'd-3', event: 'ping' })).status).toEqual(200)
    const { records } = await observed.store.list()
    expect(
      records.map(({ key, state, hasPayload }) => [key.deliveryId, state, hasPayload]),
    ).toEqual([['d-1', 'pending', true]])
    expect(runs.length).toEqual(0)
  },

  async A57({ serve, expect }) {
    const { observed } = await serve()
    const inbox = sharedInbox({ observed })
    const { send } = await serve({ inbox, options: { queue: true } })
    const answers = await Promise.all(Array.from({ length: 50 }, () => send()))
    expect(tally(answers.map(({ status }) => String(status)))).toEqual({ 202: 50 })
    let runs = 0
    await createWorker({
      inbox,
      handler() {
        runs += 1
      },
    }).drain()
    expect(runs).toEqual(1)
  },
} as const satisfies Record<string, AdapterGuarantee>
