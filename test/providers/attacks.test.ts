/** What somebody can do who has seen a signed request, or none. */
import { createHash, sign } from 'node:crypto'
import { defineProvider, type Receipt, verify } from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { p256, rsa, rsaPem } from './keys.ts'
import { acme, bytes, form, hmac, json, nowSeconds, p256Spki, site, snsMessage } from './support.ts'

describe('the content type, which nobody signs', () => {
  it('GitHub: a text in a JSON body is no form', async () => {
    const { send, seen } = site('github', 'topsecret')
    const forged = encodeURIComponent(JSON.stringify({ action: 'published', release: {} }))
    const payload = { action: 'created', comment: { body: `hello &payload=${forged}& bye` } }
    const body = JSON.stringify(payload)
    const signature = `sha256=${hmac('topsecret', body)}`
    for (const [id, type] of [
      ['1', json],
      ['2', form],
      ['3', { 'content-type': 'text/plain' }],
    ] as const) {
      const headers = { 'x-hub-signature-256': signature, 'x-github-event': 'issue_comment' }
      await send({ ...headers, ...type, 'x-github-delivery': id }, body)
    }
    expect(seen.map((one) => one.payload)).toEqual([payload, payload, payload])
  })

  it('Stripe: an id in a text of the body is not its id', async () => {
    const { send, seen } = site('stripe', 'whsec_x')
    const name = 'x&id=evt_forged&type=invoice.paid&amount=1000000&y='
    const body = JSON.stringify({ id: 'evt_1', type: 'customer.updated', data: { name } })
    const time = nowSeconds()
    const headers = { 'stripe-signature': `t=${time},v1=${hmac('whsec_x', `${time}.${body}`)}` }
    for (const type of [json, form]) await send({ ...headers, ...type }, body)
    expect(seen.map(({ id, event }) => [id, event])).toEqual([['evt_1', 'customer.updated']])
  })

  it('LINE: a list stays a list', async () => {
    const { send, seen } = site('line', 'l')
    const body = JSON.stringify({ events: [{ type: 'message', webhookEventId: 'A' }] })
    const headers = { 'x-line-signature': hmac('l', body, 'base64') }
    for (const type of [json, form]) await send({ ...headers, ...type }, body)
    expect(seen.map(({ items }) => items)).toEqual([['A']])
  })

  it.each([
    ['a=b', { a: 'b' }],
    ['data[id]=1&data[id]=2', { 'data[id]': ['1', '2'] }],
    ['text=a+b%26c&empty=', { text: 'a b&c', empty: '' }],
    ['payload={"a":1}\n', { payload: '{"a":1}\n' }],
    ['__proto__=1&a=2', JSON.parse('{"__proto__":"1","a":"2"}')],
    ['{"cut":"a=b', undefined],
    ['[1,', undefined],
    ['<a b="c=d"/>', undefined],
    ['one = two', undefined],
    ['hello world', undefined],
    ['=b', undefined],
    ['', undefined],
  ])('%s is read for what it is', async (body, payload) => {
    for (const type of [form, json, {}]) {
      const headers = { ...type, 'acme-signature': hmac('s', body) }
      const verified = await verify(acme, { headers, body: bytes(body), secret: 's' })
      expect(verified).toMatchObject({ valid: true, delivery: { payload } })
    }
  })

  it('Slack: a form stays a form', async () => {
    const { send, seen } = site('slack', 'sl')
    const body = 'command=%2Fdeploy&text=now&trigger_id=T1'
    const time = nowSeconds()
    const headers = {
      'x-slack-request-timestamp': String(time),
      'x-slack-signature': `v0=${hmac('sl', `v0:${time}:${body}`)}`,
    }
    for (const type of [form, json, {}]) await send({ ...headers, ...type }, body)
    expect(seen.map(({ id }) => id)).toEqual(['T1'])
  })
})

describe('signed text that is moved between the headers, the address and the body', () => {
  it('Kick: the id takes nothing of the time, and the time nothing of the body', async () => {
    const { send, seen } = site('kick', rsaPem)
    const body = '{"a":"https://kick.com/x","n":1.5}'
    const time = new Date().toISOString()
    const signature = sign('sha256', bytes(`ID1.${time}.${body}`), rsa.privateKey)
    const headers = (id: string, text: string) => ({
      'kick-event-message-id': id,
      'kick-event-message-timestamp': text,
      'kick-event-signature': signature.toString('base64'),
      'kick-event-type': 'chat.message.sent',
    })
    await send(headers('ID1', time), body)
    const [start = '', fraction = ''] = time.split('.')
    const at = body.indexOf('.')
    await send(headers(`ID1.${start}`, fraction), body)
    await send(headers(`ID1.${time}`, body.slice(0, at)), body.slice(at + 1))
    await send(headers('ID1', start), `${fraction}.${body}`)
    expect(seen.map(({ id }) => id)).toEqual(['ID1'])
  })

  it('SendGrid: the time takes nothing of the body, and the body nothing of the time', async () => {
    const { send, seen } = site('sendgrid', p256Spki)
    const time = String(nowSeconds())
    const body = `${JSON.stringify([{ sg_event_id: 'a', event: 'open' }])}\r\n`
    const signature = sign('sha256', bytes(time + body), p256.privateKey).toString('base64')
    const whole = time + body
    for (let length = 0; length <= whole.length; length++) {
      const headers = {
        'x-twilio-email-event-webhook-signature': signature,
        'x-twilio-email-event-webhook-timestamp': whole.slice(0, length),
      }
      await send(headers, whole.slice(length))
    }
    expect(seen.map(({ items }) => items)).toEqual([['a']])
  })

  it('HubSpot: the query is not part of the body', async () => {
    const { send, seen } = site('hubspot', 's', { publicUrl: 'https://h.test' })
    const time = String(Date.now())
    const body = hubspotBody()
    const signature = hmac('s', `POSThttps://h.test/in?a=1${body}${time}`, 'base64')
    const headers = { 'x-hubspot-signature-v3': signature, 'x-hubspot-request-timestamp': time }
    await send(headers, body, '/in?a=1')
    await send(headers, `?a=1${body}`, '/in')
    await send({ ...headers, ...form }, `?a=1${body}`, '/in')
    await send(headers, body.slice(1), '/in?a=1[')
    expect(seen.map(({ items }) => items)).toEqual([['1:2:3:4']])
  })

  it('HubSpot: a plain hash is not lengthened', async () => {
    const { send, seen } = site('hubspot', 'x'.repeat(36), { publicUrl: 'https://h.test' })
    const body = hubspotBody()
    // What is hashed after the padding of a captured hash; its first byte is 0x80, which no JSON has outside a text.
    const padded = Buffer.concat([bytes(body), Uint8Array.of(0x80, 0, 0, 0), bytes('FORGED')])
    for (const given of [bytes(body), padded]) {
      const hash = createHash('sha256').update('x'.repeat(36)).update(given).digest('hex')
      const headers = { 'x-hubspot-signature': hash, 'x-hubspot-signature-version': 'v1' }
      await send(headers, given, '/in')
    }
    expect(seen.map(({ items }) => items)).toEqual([['1:2:3:4']])
  })

  it('Coinbase: the names of the signed headers take nothing of their values', async () => {
    const { send, seen } = site('coinbase-cdp', 's')
    const time = nowSeconds()
    const body = '{"id":"E1","eventType":"x","amount":"1.5"}'
    const signature = hmac('s', `${time}.x-hook0-id.UUID.${body}`)
    const header = (names: string) => `t=${time},h=${names},v1=${signature}`
    await send({ 'x-hook0-id': 'UUID', 'x-hook0-signature': header('x-hook0-id') }, body)
    const at = body.indexOf('.')
    await send(
      {
        'x-hook0-id.uuid': body.slice(0, at),
        'x-hook0-signature': header('x-hook0-id.UUID'),
      },
      body.slice(at + 1),
    )
    await send(
      { 'x-hook0-id': `UUID.${body.slice(0, at)}`, 'x-hook0-signature': header('x-hook0-id') },
      body.slice(at + 1),
    )
    expect(seen.map(({ id }) => id)).toEqual(['E1'])
  })

  it('Adyen: one field takes nothing of the next, and is a text', async () => {
    const hex = '44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056'
    const { send, seen } = site('adyen', hex)
    const item = {
      pspReference: '7914073381342284',
      originalReference: '',
      merchantAccountCode: 'TestMerchant',
      merchantReference: 'order:12',
      amount: { value: 1130, currency: 'EUR' },
      eventCode: 'AUTHORISATION',
      success: 'true',
    }
    const signed = '7914073381342284::TestMerchant:order:12:1130:EUR:AUTHORISATION:true'
    const hmacSignature = hmac(Buffer.from(hex, 'hex'), signed, 'base64')
    const sendItem = (change: object): Promise<Receipt> =>
      send(
        json,
        JSON.stringify({
          notificationItems: [
            { NotificationRequestItem: { ...item, additionalData: { hmacSignature }, ...change } },
          ],
        }),
      )
    expect(await sendItem({})).toMatchObject({ status: 'completed' })
    const moved = {
      pspReference: '7914073381342284:',
      originalReference: 'TestMerchant',
      merchantAccountCode: 'order',
      merchantReference: '12',
    }
    const odd = { toString: 1, valueOf: 1 }
    for (const change of [
      moved,
      { pspReference: ['7914073381342284'] },
      { pspReference: odd },
      { amount: { value: [[1130]], currency: ['EUR'] } },
    ])
      expect(await sendItem(change)).toMatchObject({ code: 'signature_mismatch' })
    expect(seen).toHaveLength(1)
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
    const nested = `{"notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":"x"},"pspReference":${deep}}}]}`
    expect(await send(json, nested)).toMatchObject({ code: 'signature_mismatch' })
  })
})

function hubspotBody(): string {
  return JSON.stringify([
    {
      portalId: 1,
      subscriptionId: 2,
      eventId: 3,
      occurredAt: 4,
      subscriptionType: 'contact.creation',
    },
  ])
}

describe('what the signature does not cover', () => {
  it('Braintree: another field beside the payload is no other delivery', async () => {
    const { send, seen } = site('braintree', 'pk:sk')
    const payload = Buffer.from('<notification/>').toString('base64')
    const key = createHash('sha1').update('sk').digest()
    const signature = hmac(key, payload, 'hex', 'sha1')
    const body = `bt_signature=${encodeURIComponent(`pk|${signature}`)}&bt_payload=${encodeURIComponent(payload)}`
    for (const more of ['', '&x=1', '&x=2']) await send(form, body + more)
    expect(seen).toHaveLength(1)
  })

  it('Twilio: the same fields in another order or writing are the same call', async () => {
    const { send, seen } = site('twilio', 'tok', { publicUrl: 'https://h.test' })
    const signature = hmac('tok', 'https://h.test/inBodyhelloCallSidCA1', 'base64', 'sha1')
    const headers = { ...form, 'x-twilio-signature': signature }
    for (const body of [
      'Body=hello&CallSid=CA1',
      'CallSid=CA1&Body=hello',
      'Body=h%65llo&CallSid=CA1',
      'BodyhelloCallSid=CA1',
    ])
      expect(await send(headers, body, '/in')).toMatchObject({ status: 'completed' })
    expect(seen).toHaveLength(1)
  })

  it.each([
    [
      'Twilio',
      (guarded: boolean) => {
        const { send, seen } = site('twilio', 'tok', {
          publicUrl: 'https://h.test',
          replayGuard: guarded,
        })
        const signature = hmac('tok', 'https://h.test/inBodyhello', 'base64', 'sha1')
        const headers = { ...form, 'x-twilio-signature': signature }
        return {
          seen,
          again: (turn: number) =>
            send({ ...headers, 'i-twilio-idempotency-token': `${turn}` }, 'Body=hello', '/in'),
        }
      },
    ],
    [
      'Mailgun',
      (guarded: boolean) => {
        const { send, seen } = site('mailgun', 'k', { replayGuard: guarded })
        const timestamp = String(nowSeconds())
        const signature = { timestamp, token: 'tok', signature: hmac('k', `${timestamp}tok`) }
        return {
          seen,
          again: (turn: number) =>
            send(
              json,
              JSON.stringify({ signature, 'event-data': { id: `${turn}`, event: 'opened' } }),
            ),
        }
      },
    ],
    [
      'SNS',
      (guarded: boolean) => {
        const message = snsMessage()
        const { send, seen } = site('aws-sns', message.TopicArn, {
          replayGuard: guarded,
          keys: () => rsaPem,
        })
        return {
          seen,
          again: (turn: number) =>
            send(json, JSON.stringify({ ...message, UnsubscribeURL: `https://x.test/${turn}` })),
        }
      },
    ],
  ])('%s: under the replay guard it makes no other delivery', async (name, make) => {
    const { again, seen } = make(true)
    for (const turn of [1, 2, 3]) expect(await again(turn)).toMatchObject({ status: 'completed' })
    expect(seen).toHaveLength(1)
    const open = make(false)
    for (const turn of [1, 2, 3]) await open.again(turn)
    // Its id is signed anyway.
    expect(open.seen).toHaveLength(name === 'SNS' ? 1 : 3)
  })
})

describe('requests that cost time or memory', () => {
  it('sets of signatures beyond what anybody sends are not computed', async () => {
    let computed = 0
    const acme = defineProvider({
      name: 'acme',
      signature: {
        scheme: 'hmac',
        hash: 'SHA-256',
        encoding: 'hex',
        header: 'acme-signature',
        groups: ' ',
        separator: ',',
        prefix: 'v1=',
        content({ body }) {
          computed += 1
          return [body]
        },
      },
      deliveryId: { digest: 'body' },
      event: { value: 'event' },
      retriesByItself: true,
      retentionMs: 86_400_000,
    })
    for (const [sets, most] of [
      [20, 20],
      [21, 0],
      [4000, 0],
    ] as const) {
      computed = 0
      const headers = { 'acme-signature': Array(sets).fill('t=1').join(' ') }
      const verified = await verify(acme, { headers, body: bytes('{}'), secret: 's' })
      expect(verified).toMatchObject({ code: 'signature_mismatch' })
      expect(computed).toBe(most)
    }
  })

  it.each([
    ['slack', 's'],
    ['woocommerce', 's'],
    ['notion', 's'],
  ] as const)('%s: an unsigned form of very many fields is read once', async (provider, secret) => {
    const { send } = site(provider, secret)
    const body = Array.from({ length: 100_000 }, (_, index) => `${index.toString(36)}=`).join('&')
    // Read once for every field it would take minutes: the time limit of the test tells.
    expect(await send(form, body)).toMatchObject({ code: 'signature_missing' })
  })

  it.each([
    ['twitch', '{"challenge":{"toString":1,"valueOf":1}}'],
    ['twitch', `{"challenge":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
  ] as const)('%s: a challenge that no answer can be made of is a 503', async (provider, body) => {
    const { send } = site(provider, 's')
    const time = new Date().toISOString()
    const headers = {
      'twitch-eventsub-message-id': '1',
      'twitch-eventsub-message-timestamp': time,
      'twitch-eventsub-message-type': 'webhook_callback_verification',
      'twitch-eventsub-message-signature': `sha256=${hmac('s', `1${time}${body}`)}`,
    }
    const receipt = await send(headers, body)
    expect(receipt).toMatchObject({ code: 'internal_error', answer: { status: 503 } })
  })
})

describe('items', () => {
  it('whose ids differ in blanks are two', async () => {
    const { send, seen } = site('line', 's')
    const ids = [' a', 'a ', 'a', '  ', ' ']
    const events = ids.map((webhookEventId, index) => ({ webhookEventId, type: 'x', index }))
    const body = JSON.stringify({ events })
    await send({ 'x-line-signature': hmac('s', body, 'base64') }, body)
    expect(new Set(seen[0]?.items).size).toBe(5)
  })

  it('HubSpot: an attempt is not another event', async () => {
    const { send, seen } = site('hubspot', 's', { publicUrl: 'https://h.test' })
    for (const attemptNumber of [0, 1]) {
      const body = JSON.stringify([
        { portalId: 1, eventId: 3, subscriptionType: 'contact.creation', attemptNumber },
      ])
      const hash = createHash('sha256').update(`s${body}`).digest('hex')
      await send({ 'x-hubspot-signature': hash, 'x-hubspot-signature-version': 'v1' }, body, '/in')
    }
    expect(seen).toHaveLength(1)
  })
})
