import { createReceiver, memoryStore, providers, type Receipt, verify } from '@webhook-inbox/core'
import { type SignRequestOptions, signRequest } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { credentialsOf, entryOf, jwtEntries } from './keys.ts'
import { bytes, form } from './support.ts'

const url = 'https://hooks.example.test/in'

type Sending = Omit<SignRequestOptions, 'secret' | 'privateKey' | 'body'> & {
  readonly body?: string
}

/** A receiver of the sender, and what sends it what the sender has signed. */
function site(name: string, { queue = false }: { readonly queue?: boolean } = {}) {
  const entry = entryOf(name)
  const { secret, keys, privateKey } = credentialsOf(entry)
  const ran: unknown[] = []
  const receiver = createReceiver({
    provider: entry,
    ...(secret === undefined ? {} : { secret }),
    ...(keys === undefined ? {} : { keys }),
    publicUrl: url,
    store: memoryStore(),
    ...(queue
      ? { queue: true }
      : {
          handler: ({ id, event, items, payload }) =>
            void ran.push(items?.map((item) => [item.id, item.event]) ?? [id, event, payload]),
        }),
  })
  async function send(options: Sending = {}) {
    const { headers, body } = await signRequest(entry, {
      ...(secret === undefined ? {} : { secret }),
      ...(privateKey === undefined ? {} : { privateKey }),
      url,
      deliveryId: 'd-1',
      ...options,
    })
    const request = { method: 'POST', url: '/in', headers, body: bytes(body) }
    return answerOf(await receiver.receive(request, undefined))
  }
  return { ran, receiver, send }
}

function answerOf(receipt: Receipt) {
  if (receipt.status === 'claimed') throw new Error('claimed')
  const { status, headers, body } = receipt.answer
  return { state: receipt.status, status, type: headers['content-type'], body }
}

const twice: readonly [string, string, Sending, Sending][] = [
  [
    'plaid',
    'an item that has news again',
    { body: '{"webhook_type":"TRANSACTIONS","webhook_code":"SYNC_UPDATES_AVAILABLE"}' },
    { body: '{"webhook_type":"TRANSACTIONS","webhook_code":"SYNC_UPDATES_AVAILABLE"}' },
  ],
  ['doppler', 'a text that the user has fixed', { body: '{"a":1}' }, { body: '{"a":1}' }],
  [
    'supabase',
    'a row that is changed there and back',
    { body: '{"table":"t","type":"UPDATE","record":{"on":true}}' },
    { body: '{"table":"t","type":"UPDATE","record":{"on":true}}' },
  ],
  [
    'bird',
    'the states of a message',
    { body: '{"service":"channels","event":"sms.outbound","payload":{"id":"1","status":"sent"}}' },
    { body: '{"service":"channels","event":"sms.outbound","payload":{"id":"1","status":"read"}}' },
  ],
  [
    'postmark',
    'a message that is opened again',
    {
      body: '{"RecordType":"Open","MessageID":"m","Recipient":"a@x.test","ReceivedAt":"2026-12-01T00:00:00Z"}',
    },
    {
      body: '{"RecordType":"Open","MessageID":"m","Recipient":"a@x.test","ReceivedAt":"2026-12-01T00:00:05Z"}',
    },
  ],
  [
    'postmark',
    'the recipients of one message',
    {
      body: '{"RecordType":"Delivery","MessageID":"m","Recipient":"a@x.test","DeliveredAt":"2026-12-01T00:00:00Z"}',
    },
    {
      body: '{"RecordType":"Delivery","MessageID":"m","Recipient":"b@x.test","DeliveredAt":"2026-12-01T00:00:00Z"}',
    },
  ],
  [
    'woocommerce',
    'two orders in one second',
    { body: '{"id":1}', headers: { 'x-wc-webhook-delivery-id': 'same' } },
    { body: '{"id":2}', headers: { 'x-wc-webhook-delivery-id': 'same' } },
  ],
  [
    'twilio',
    'two answers in one call',
    { body: 'CallSid=CA1&CallStatus=in-progress&Digits=1', headers: form },
    { body: 'CallSid=CA1&CallStatus=in-progress&Digits=2', headers: form },
  ],
  [
    'meta-whatsapp',
    'a page that is renamed there and back',
    { body: '{"entry":[{"id":"1","time":1,"changes":[{"field":"name","value":"A"}]}]}' },
    { body: '{"entry":[{"id":"1","time":2,"changes":[{"field":"name","value":"A"}]}]}' },
  ],
  [
    'meta-whatsapp',
    'a message and its taking back',
    { body: '{"entry":[{"id":"1","messaging":[{"message":{"mid":"m"}}]}]}' },
    { body: '{"entry":[{"id":"1","messaging":[{"message":{"mid":"m","is_deleted":true}}]}]}' },
  ],
  [
    'event-grid',
    'the same id in two topics',
    { body: '[{"id":"1","topic":"/a","eventType":"x"}]' },
    { body: '[{"id":"1","topic":"/b","eventType":"x"}]' },
  ],
  [
    'quickbooks',
    'two events of one company',
    { body: '[{"id":"1","source":"s","type":"qbo.invoice.created.v1"}]' },
    { body: '[{"id":"2","source":"s","type":"qbo.invoice.created.v1"}]' },
  ],
]

describe('two events are not taken for one', () => {
  it.each(twice)('%s: %s', async (name, _what, first, second) => {
    const { ran, send } = site(name)
    // No header may tell them apart: what these senders put there is not the event's.
    const given = (options: Sending) => ({
      ...options,
      headers: {
        'i-twilio-idempotency-token': '',
        'x-pm-webhook-trace-id': '',
        ...options.headers,
      },
    })
    for (const options of [first, second])
      expect(await send(given(options))).toMatchObject({ state: 'completed', status: 200 })
    expect(ran).toHaveLength(2)
    if ('dedup' in entryOf(name).deliveryId) return
    // And a copy is still a copy.
    expect(await send(given(second))).toMatchObject({ state: 'completed' })
    expect(ran).toHaveLength(2)
  })

  it('GitLab before 17.4: webhooks that set off each other share its id', async () => {
    const idOf = async (body: string): Promise<string> => {
      const headers = { 'x-gitlab-token': 'a token', 'x-gitlab-event-uuid': 'same' }
      const verified = await verify('gitlab', { headers, body: bytes(body), secret: 'a token' })
      if (!verified.valid) throw new Error(verified.code)
      return verified.delivery.id
    }
    const first = await idOf('{"object_kind":"push","after":"1"}')
    expect(await idOf('{"object_kind":"push","after":"2"}')).not.toBe(first)
    expect(await idOf('{"object_kind":"push","after":"1"}')).toBe(first)
  })
})

describe('statuses after which a sender never tries again', () => {
  const stopping = [...Object.values(providers), ...jwtEntries].filter(
    ({ stopStatuses = [] }) => stopStatuses.length > 0,
  )
  it.each(stopping)('$name: no answer has one that another attempt could mend', async (entry) => {
    const { secret, keys, privateKey } = credentialsOf(entry)
    const credentials = {
      ...(secret === undefined ? {} : { secret }),
      ...(privateKey === undefined ? {} : { privateKey }),
    }
    const base = {
      provider: entry,
      publicUrl: url,
      onError: () => {},
      ...(secret === undefined ? {} : { secret }),
      ...(keys === undefined ? {} : { keys }),
    }
    const gone = async (): Promise<never> => {
      throw new Error('the store is gone')
    }
    const throwing = createReceiver({
      ...base,
      store: memoryStore(),
      handler: () => {
        throw new Error('down')
      },
    })
    const storeless = createReceiver({
      ...base,
      store: { ...memoryStore(), claim: gone, abandon: gone },
      handler: () => {},
    })
    const { headers, body } = await signRequest(entry, { ...credentials, url })
    const request = { method: 'POST', url: '/in', headers, body: bytes(body) }
    const old = await signRequest(entry, { ...credentials, url, at: new Date(0) })
    const consumed = async () => ({ ok: false, code: 'ERR_BODY_CONSUMED' }) as const
    const answers = [
      await throwing.receive(request, undefined),
      await storeless.receive(request, undefined),
      await throwing.receive(
        { ...request, headers: old.headers, body: bytes(old.body) },
        undefined,
      ),
      await throwing.receive({ ...request, body: consumed }, undefined),
      await throwing.receive({ ...request, headers: {}, body: bytes('{}') }, undefined),
      await throwing.receive({ ...request, body: bytes(`${body} `) }, undefined),
    ].map((receipt) => answerOf(receipt).status)
    expect(answers.filter((status) => entry.stopStatuses?.includes(status))).toEqual([])
    expect(answers[0]).toBe(entry.stopStatuses?.includes(500) ? 503 : 500)
  })

  it('a route’s own status is one of ours then', async () => {
    const { secret = '' } = credentialsOf(entryOf('azure-devops'))
    const receiver = createReceiver({ provider: 'azure-devops', secret, store: memoryStore() })
    const { headers, body } = await signRequest('azure-devops', { secret })
    const request = { method: 'POST', url: '/in', headers, body: bytes(body) }
    const receipt = await receiver.receive(request, undefined)
    if (receipt.status !== 'claimed') throw new Error(receipt.status)
    expect(await receipt.settle({ status: 500 })).toMatchObject({
      state: 'failed',
      replace: { status: 503 },
    })
  })
})

describe('addresses in two writings', () => {
  it('HubSpot: with its punctuation encoded or not', async () => {
    const secret = 'the client secret'
    const written = 'https://hooks.example.test/hs?to=a%40b%3Ac&x=1%20%26'
    const plain = 'https://hooks.example.test/hs?to=a@b:c&x=1%20%26'
    const judge = async (signed: string, url: string) => {
      const { headers, body } = await signRequest('hubspot', { secret, url: signed })
      return (await verify('hubspot', { headers, body: bytes(body), secret, url })).valid
    }
    expect(await judge(written, written)).toBe(true)
    expect(await judge(plain, written)).toBe(true)
    expect(await judge(plain, `${written}2`)).toBe(false)
    expect(await judge('https://hooks.example.test/hs?to=a@b:c&x=1 &', written)).toBe(false)
  })
})

describe('bodies of several kinds', () => {
  const log = (id: string) => ({ log_id: id, data: { type: 's' } })

  it.each([
    ['a list', JSON.stringify([log('1'), log('2')])],
    ['lines', `${JSON.stringify(log('1'))}\n${JSON.stringify(log('2'))}\n`],
    ['lines of Windows', `${JSON.stringify(log('1'))}\r\n${JSON.stringify(log('2'))}`],
  ])('Auth0 log streams: %s', async (_kind, body) => {
    const { ran, send } = site('auth0-logs')
    await send({ body })
    expect(ran).toEqual([
      [
        ['1', 's'],
        ['2', 's'],
      ],
    ])
  })

  it('Auth0 log streams: one log alone', async () => {
    const { ran, send } = site('auth0-logs')
    await send({ body: JSON.stringify(log('1')) })
    await send({ body: JSON.stringify([log('1'), log('2')]) })
    expect(ran).toEqual([[['1', 's']], [['2', 's']]])
  })

  it('QuickBooks: a list of events, or one notification as before', async () => {
    const { ran, send } = site('quickbooks')
    await send({ body: '[{"id":"1","source":"s","type":"qbo.invoice.created.v1"}]' })
    await send({ body: '{"eventNotifications":[{"realmId":"1"}]}' })
    expect(ran).toEqual([
      [['s#1', 'qbo.invoice.created.v1']],
      [expect.stringMatching(/^sha256:/), 'notification', expect.anything()],
    ])
  })
})

describe('the answers that senders want', () => {
  it.each([
    'zoom',
    'mailgun',
    'postmark',
    'lemon-squeezy',
    'linear',
    'quickbooks',
    'meta-whatsapp',
  ])('%s takes nothing but 200, and what is stored first is a success', async (name) => {
    const { send } = site(name, { queue: true })
    const answer = await send({ event: 'a.b' })
    expect(answer).toMatchObject({ state: 'pending', status: 200, type: 'application/json' })
    expect(JSON.parse(answer.body)).toMatchObject({ status: 'pending' })
  })

  it.each(['xero', 'airtable'])('%s wants an empty body', async (name) => {
    const { send } = site(name, { queue: true })
    const sent = await send(name === 'xero' ? { payload: { events: [{ a: 1 }] } } : {})
    expect(sent).toEqual({ state: 'pending', status: 200, type: undefined, body: '' })
  })

  it('Slack shows what a command is answered with, and does nothing with the answer to an event', async () => {
    const { send } = site('slack', { queue: true })
    const command = await send({ body: 'command=%2Fdeploy&trigger_id=1', headers: form })
    expect(command).toEqual({ state: 'pending', status: 200, type: undefined, body: '' })
    expect(await send({ event: 'app_mention' })).toMatchObject({ status: 202 })
  })

  it('Discord: an event wants 204, and an interaction something else', async () => {
    const { send } = site('discord', { queue: true })
    const event = await send({ body: '{"type":1,"event":{"type":"ENTITLEMENT_CREATE"}}' })
    expect(event).toEqual({ state: 'pending', status: 204, type: undefined, body: '' })
    expect(await send({ body: '{"type":2,"id":"1"}' })).toMatchObject({ status: 202 })
  })

  it('Twilio does what the answer says, and is told to do nothing', async () => {
    const { send } = site('twilio')
    const message = { body: 'MessageSid=SM1&SmsStatus=received', headers: form }
    const expected = { status: 200, type: 'text/xml', body: '<Response/>' }
    expect(await send(message)).toMatchObject(expected)
    expect(await send(message)).toMatchObject(expected)
  })

  it('WooCommerce asks without a signature whether somebody is there', async () => {
    const { ran, receiver } = site('woocommerce')
    const ask = async (body: string) =>
      answerOf(
        await receiver.receive(
          { method: 'POST', url: '/in', headers: form, body: bytes(body) },
          undefined,
        ),
      )
    expect(await ask('webhook_id=3')).toMatchObject({ state: 'handshake', status: 200, body: '' })
    expect(await ask('id=3')).toMatchObject({ state: 'refused', status: 401 })
    expect(ran).toEqual([])
    const body = bytes('webhook_id=3')
    expect(await verify('woocommerce', { headers: form, body, secret: 's' })).toMatchObject({
      valid: false,
    })
  })
})
