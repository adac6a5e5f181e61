/** What somebody can do who has seen a signed request, or none. */
import { createHash, createHmac, generateKeyPairSync, sign } from 'node:crypto'
import {
  createReceiver,
  defineProvider,
  type KeySource,
  memoryStore,
  type ProviderName,
  type Receipt,
  verify,
} from '@webhook-inbox/core'
import { googlePubsub, netlify, plaid } from '@webhook-inbox/core/jwt'
import { exportJWK, SignJWT } from 'jose'
import { afterEach, describe, expect, it, vi } from 'vitest'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)
const nowSeconds = (): number => Math.floor(Date.now() / 1000)

function hmac(
  key: string | Uint8Array,
  text: string,
  encoding: 'hex' | 'base64' = 'hex',
  hash = 'sha256',
): string {
  return createHmac(hash, key).update(text).digest(encoding)
}

interface Seen {
  readonly id: string
  readonly event: string
  readonly payload: unknown
  readonly items: readonly string[] | undefined
}

function site(
  provider: ProviderName,
  secret: string,
  options: {
    readonly publicUrl?: string
    readonly toleranceMs?: number
    readonly maxBodyBytes?: number
    readonly replayGuard?: boolean
    readonly keys?: KeySource
  } = {},
) {
  const seen: Seen[] = []
  const receiver = createReceiver<undefined>({
    store: memoryStore(),
    onError: () => {},
    handler: ({ id, event, payload, items }) =>
      void seen.push({ id, event, payload, items: items?.map((item) => item.id) }),
    ...options,
    provider,
    secret,
  })
  const send = (
    headers: Readonly<Record<string, string>>,
    body: string | Uint8Array,
    url = '/',
    method = 'POST',
  ): Promise<Receipt> =>
    receiver.receive(
      { method, url, headers, body: typeof body === 'string' ? bytes(body) : body },
      undefined,
    )
  return { send, seen }
}

const form = { 'content-type': 'application/x-www-form-urlencoded' }
const json = { 'content-type': 'application/json' }

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
    const acme = defineProvider({
      name: 'acme',
      signature: {
        scheme: 'hmac',
        hash: 'SHA-256',
        encoding: 'hex',
        header: 'acme-signature',
        content: '{body}',
      },
      deliveryId: { digest: 'body' },
      event: { value: 'event' },
      retriesByItself: true,
      retentionMs: 86_400_000,
    })
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

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const rsaPem = rsa.publicKey.export({ type: 'spki', format: 'pem' }).toString()
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const p256Spki = p256.publicKey.export({ type: 'spki', format: 'der' }).toString('base64')

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

function snsMessage(change: Readonly<Record<string, string>> = {}) {
  const message = {
    Type: 'Notification',
    MessageId: 'M1',
    TopicArn: 'arn:aws:sns:us-east-1:1:topic',
    Message: 'hi',
    Timestamp: '2026-01-01T00:00:00.000Z',
    SignatureVersion: '2',
    SigningCertURL: 'https://sns.us-east-1.amazonaws.com/a.pem',
    ...change,
  }
  const signed = (['Message', 'MessageId', 'Timestamp', 'TopicArn', 'Type'] as const)
    .map((name) => `${name}\n${message[name]}\n`)
    .join('')
  const Signature = sign('sha256', bytes(signed), rsa.privateKey).toString('base64')
  return { ...message, Signature }
}

describe('certificates that a stranger names', () => {
  afterEach(() => vi.unstubAllGlobals())

  it('SNS: a certificate alone is no secret of a receiver, for it signs for every topic', async () => {
    const options = { provider: 'aws-sns', store: memoryStore(), handler: () => {} } as const
    expect(() => createReceiver({ ...options, secret: rsaPem })).toThrow(/"secret" is not .*ARN/)
    expect(() => createReceiver({ ...options, secret: ['arn:aws:sns:x', rsaPem] })).toThrow(/ARN/)
    const { send, seen } = site('aws-sns', `arn:aws:sns:us-east-1:1:topic ${rsaPem}`)
    await send(json, JSON.stringify(snsMessage()))
    await send(
      json,
      JSON.stringify(snsMessage({ TopicArn: 'arn:aws:sns:us-east-1:666:topic', MessageId: 'M2' })),
    )
    expect(seen.map(({ id }) => id)).toEqual(['M1'])
  })

  it.each([
    'https://sns.s3-us-west-2.amazonaws.com/a.pem',
    'https://sns.s3-accelerate.amazonaws.com/a.pem',
    'https://sns.s3.amazonaws.com/a.pem',
    'https://sns.execute-api.amazonaws.com/a.pem',
  ])('SNS: %s is no host of SNS', async (SigningCertURL) => {
    const asked = vi.fn(async () => new Response(rsaPem))
    vi.stubGlobal('fetch', asked)
    const { send } = site('aws-sns', 'arn:aws:sns:us-east-1:1:topic')
    const body = JSON.stringify(snsMessage({ SigningCertURL }))
    expect(await send(json, body)).toMatchObject({ code: 'signature_mismatch' })
    expect(asked).not.toHaveBeenCalled()
  })

  it('are asked for again when what came was none, and kept when it was one', async () => {
    let answer = '<html>maintenance</html>'
    const asked = vi.fn(async () => new Response(answer))
    vi.stubGlobal('fetch', asked)
    const { send } = site('aws-sns', 'arn:aws:sns:us-east-1:1:topic')
    const genuine = JSON.stringify(
      snsMessage({ SigningCertURL: 'https://sns.us-east-1.amazonaws.com/again.pem' }),
    )
    expect(await send(json, genuine)).toMatchObject({ code: 'key_unavailable' })
    answer = rsaPem
    expect(await send(json, genuine)).toMatchObject({ status: 'completed' })
    await Promise.all(Array.from({ length: 50 }, () => send(json, genuine)))
    expect(asked).toHaveBeenCalledTimes(2)
  })

  it('are asked for ten at a time of one host, and no number of requests keeps genuine ones out', async () => {
    const answers: ((response: Response) => void)[] = []
    vi.stubGlobal('fetch', (url: string) => {
      if (!url.includes('/x')) return new Response(rsaPem)
      return new Promise<Response>((resolve) => answers.push(resolve))
    })
    const { send } = site('aws-sns', 'arn:aws:sns:us-east-1:1:topic')
    const genuineOf = (region: string) => {
      const SigningCertURL = `https://sns.${region}.amazonaws.com/many.pem`
      return JSON.stringify(snsMessage({ SigningCertURL, MessageId: region }))
    }
    const strangers = Array.from({ length: 300 }, (_, turn) => {
      const SigningCertURL = `https://sns.us-east-1.amazonaws.com/x${turn}.pem`
      return send(json, JSON.stringify({ ...snsMessage({ SigningCertURL }), Signature: 'AAAA' }))
    })
    await vi.waitFor(() => expect(answers).toHaveLength(10))
    expect(await send(json, genuineOf('eu-west-1'))).toMatchObject({ status: 'completed' })
    for (const answer of answers) answer(new Response('none', { status: 403 }))
    for (const answer of await Promise.all(strangers))
      expect(answer).toMatchObject({ code: 'key_unavailable' })
    expect(answers).toHaveLength(10)
    expect(await send(json, genuineOf('us-east-1'))).toMatchObject({ status: 'completed' })
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

describe('a provider entry with a fault', () => {
  const acme = {
    name: 'acme',
    signature: {
      scheme: 'hmac',
      hash: 'SHA-256',
      encoding: 'hex',
      header: 'acme-signature',
      content: '{body}',
    },
    deliveryId: { body: 'id' },
    event: { body: 'type' },
    retriesByItself: true,
    retentionMs: 86_400_000,
  } as const

  function define(change: object): () => unknown {
    // As unknown: what JavaScript users can write, the compiler refuses.
    return () => Reflect.apply(defineProvider, undefined, [{ ...acme, ...change }])
  }
  const signature = (change: object) => ({ signature: { ...acme.signature, ...change } })
  const handshake = (change: object) => ({
    handshakes: [{ name: 'x', when: [{ body: 'type', equals: 'ping' }], answer: {}, ...change }],
  })
  const timed = { content: '{timestamp}.{body}' }
  const jwt = { scheme: 'jwt', header: 'a', algorithms: ['HS256'], verify: async () => 'valid' }

  it.each([
    [
      'a scheme with a misspelt field',
      signature({ prefx: 'v1=' }),
      /"signature.prefx" must be left out.*did you mean "prefix"\?$/,
    ],
    ['a condition that is none', signature({ when: [null] }), /"signature.when"/],
    ['a condition that is a text', signature({ when: ['x-foo'] }), /"signature.when"/],
    [
      'a scheme chosen by the body',
      signature({ when: [{ body: 'a' }] }),
      /nothing of the body is proved/,
    ],
    [
      'a time with a misspelt field',
      signature({ ...timed, timestamp: { header: 't', unit: 's', pastMS: 1 } }),
      /timestamp.pastMS" must be left out/,
    ],
    ['a time that is a text', signature({ timestamp: 't' }), /"signature.timestamp"/],
    [
      'a time without a unit',
      signature({ ...timed, timestamp: { header: 't' } }),
      /timestamp.unit/,
    ],
    ['a time from nowhere', signature({ timestamp: { unit: 's' } }), /"header" or the "body"/],
    ['a template without its time', signature(timed), /the content has a '{timestamp}'/],
    ['a secret format that is a text', signature({ secret: 'hex' }), /"signature.secret"/],
    [
      'a handshake with a misspelt condition',
      handshake({ when: [{ body: 'type', equal: 'ping' }] }),
      /"handshakes.0.when"/,
    ],
    [
      'a handshake with a misspelt field',
      handshake({ singed: false }),
      /"handshakes.0.singed" must be left out/,
    ],
    [
      'an answer with a misspelt field',
      handshake({ answer: { txt: { value: 'ok' } } }),
      /answer.txt" must be left out/,
    ],
    ['an answer that is a text', handshake({ answer: { text: 'ok' } }), /answer.text/],
    ['an answer with a plain value', handshake({ answer: { json: { a: 1 } } }), /answer.json/],
    ['an answer with a strange status', handshake({ answer: { status: '200' } }), /answer.status/],
    [
      'an answer that signs for strangers',
      handshake({
        method: 'GET',
        when: [{ query: 'crc' }],
        answer: { text: { hmac: { query: 'crc' } } },
      }),
      /could have any body signed/,
    ],
    [
      'an answer that signs for strangers in JSON',
      handshake({ signed: false, answer: { json: { token: { hmac: { body: 'a' } } } } }),
      /could have any body signed/,
    ],
    ['an event of blanks', { event: { value: ' ' } }, /"event"/],
    ['a success that is no text', { success: { status: 200, body: {} } }, /"success.body"/],
    [
      'a success with a misspelt condition',
      { success: { status: 200, when: [{ header: 'x', equal: 'y' }] } },
      /"success.when"/,
    ],
    ['a source with two places', { deliveryId: { header: 'a', body: 'b' } }, /"deliveryId"/],
    [
      'items with a misspelt field',
      { items: { list: '', id: { body: 'a' }, event: { value: 'x' }, eech: 'b' } },
      /"items.eech" must be left out/,
    ],
    [
      'tokens of shared and of public keys',
      { signature: { ...jwt, algorithms: ['RS256', 'HS256'] } },
      /never both/,
    ],
    ['tokens of no algorithm', { signature: { ...jwt, algorithms: [] } }, /"signature.algorithms"/],
    ['unsigned tokens', { signature: { ...jwt, algorithms: ['none'] } }, /"signature.algorithms"/],
    [
      'a token in several headers',
      { signature: { ...jwt, header: ['a', 'b'] } },
      /"signature.header"/,
    ],
  ])('%s is told when it is made', (_name, change, message) => {
    expect(define({})).not.toThrow()
    expect(define(change)).toThrow(message)
  })

  it.each([
    [
      'an id',
      {
        deliveryId: () => {
          throw new TypeError('no id')
        },
      },
    ],
    [
      'an event',
      {
        event: () => {
          throw new TypeError('no event')
        },
      },
    ],
    ['items', { items: () => [1, null] }],
    ['signed content', signature({ content: () => 'a text' })],
  ])('a function for %s that fails is a 503, and is told', async (_name, change) => {
    const entry: unknown = define(change)()
    const errors: unknown[] = []
    const options: unknown = {
      provider: entry,
      secret: 's',
      store: memoryStore(),
      handler: () => {},
      onError: (error: unknown) => void errors.push(error),
    }
    const receiver = Reflect.apply(createReceiver, undefined, [options])
    const body = '{"id":"1","type":"paid"}'
    const receipt = await receiver.receive(
      {
        method: 'POST',
        url: '/',
        headers: { 'acme-signature': hmac('s', body) },
        body: bytes(body),
      },
      undefined,
    )
    expect(receipt).toMatchObject({ code: 'internal_error', answer: { status: 503 } })
    expect(errors).toEqual([expect.any(TypeError)])
  })

  it('a number that a function gives is a text', async () => {
    const entry: unknown = define({ deliveryId: () => 7, event: () => true })()
    const options: unknown = {
      headers: { 'acme-signature': hmac('s', '{}') },
      body: bytes('{}'),
      secret: 's',
    }
    expect(await Reflect.apply(verify, undefined, [entry, options])).toMatchObject({
      delivery: { id: '7', event: 'true' },
    })
  })
})

describe('options that would be a safety that is not there', () => {
  const base = { store: memoryStore(), handler: () => {} }
  it.each<readonly [options: object, message: RegExp]>([
    [{ provider: 'braintree', secret: 'a:b', toleranceMs: 1000 }, /"toleranceMs" has no meaning/],
    [{ provider: 'pusher', secret: 'a:b', toleranceMs: 1000 }, /"toleranceMs" has no meaning/],
    [{ provider: 'adyen', secret: 'aa', toleranceMs: 1000 }, /"toleranceMs" has no meaning/],
    [{ provider: netlify, secret: 's', toleranceMs: 1000 }, /"toleranceMs" has no meaning/],
    [{ provider: 'adyen', secret: 'aa', keys: () => '' }, /"keys" has no meaning/],
    [{ provider: 'mailgun', secret: 's', keys: () => '' }, /"keys" has no meaning/],
    [{ provider: netlify, secret: 's', keys: () => '' }, /"keys" has no meaning/],
    [{ provider: plaid }, /nothing says where the public key is.*keys: \(\{ kid \}\)/],
    [{ provider: plaid, secret: 'not a key' }, /"secret" is not a JWK/],
    [{ provider: 'stripe', secret: 'whsec_x\n' }, /ends with a line break/],
    [{ provider: 'github', secret: ['a', 'b\r\n'] }, /ends with a line break/],
  ])('%o', (options, message) => {
    expect(() => Reflect.apply(createReceiver, undefined, [{ ...base, ...options }])).toThrow(
      message,
    )
  })

  it('a key in PEM may end with a line break', () => {
    expect(() => createReceiver({ ...base, provider: 'kick', secret: rsaPem })).not.toThrow()
  })

  it('a secret function that knows no secret is no leave to use the sender’s own key', async () => {
    const body = '{"webhook_type":"A","webhook_code":"B"}'
    const token = await new SignJWT({
      request_body_sha256: createHash('sha256').update(body).digest('hex'),
    })
      .setProtectedHeader({ alg: 'ES256', kid: '1' })
      .setIssuedAt()
      .sign(p256.privateKey)
    const jwk = await exportJWK(p256.publicKey)
    const request = {
      method: 'POST',
      url: '/',
      headers: { 'plaid-verification': token },
      body: bytes(body),
    }
    const keys: KeySource = () => ({ ...jwk })
    const open = createReceiver({ ...base, provider: plaid, keys })
    expect(await open.receive(request, undefined)).toMatchObject({ status: 'completed' })
    for (const secret of [() => undefined, () => []]) {
      const receiver = createReceiver({ ...base, provider: plaid, keys, secret })
      expect(await receiver.receive(request, undefined)).toMatchObject({
        code: 'signature_mismatch',
      })
    }
  })

  it.each([
    ['is answered with an error', () => new Response('x', { status: 500 })],
    ['is no JSON', () => new Response('<html>')],
    ['is no key set', () => Response.json({ keys: 'none' })],
    [
      'cannot be had',
      () => {
        throw new TypeError('fetch failed')
      },
    ],
  ])('a key set that %s is a 503: the sender is to try again', async (_name, answer) => {
    vi.stubGlobal('fetch', async () => answer())
    const token = await new SignJWT({ email: 'e@x.test', email_verified: true })
      .setIssuer('accounts.google.com')
      .setAudience('aud')
      .setIssuedAt()
      .setExpirationTime('1h')
      .setProtectedHeader({ alg: 'RS256', kid: 'k' })
      .sign(rsa.privateKey)
    const verified = await verify(googlePubsub, {
      headers: { authorization: `Bearer ${token}` },
      body: bytes('{"message":{"messageId":"1"}}'),
      secret: 'aud e@x.test',
    })
    vi.unstubAllGlobals()
    expect(verified).toMatchObject({ code: 'key_unavailable' })
  })

  it.each([
    ['a tolerance that is no number', { toleranceMs: Number.NaN }, /"toleranceMs" must be/],
    ['a tolerance that is a text', { toleranceMs: '5m' }, /"toleranceMs" must be/],
    ['a time that is none', { now: new Date('x') }, /"now" must be a Date/],
    ['a time that is a number', { now: 1 }, /"now" must be a Date/],
  ])('verify: %s is told', async (_name, change, message) => {
    const body = '{"id":"e","type":"t"}'
    const headers = { 'stripe-signature': `t=1,v1=${hmac('s', `1.${body}`)}` }
    const request = { headers, body: bytes(body), secret: 's', ...change }
    await expect(Reflect.apply(verify, undefined, ['stripe', request])).rejects.toThrow(message)
  })

  it.each(['dropbox', 'okta'] as const)(
    'verify: %s: a stranger’s GET is not signed',
    async (provider) => {
      const verified = await verify(provider, {
        method: 'GET',
        url: '/?challenge=x',
        headers: { 'x-okta-verification-challenge': 'x' },
        secret: 's',
        verifyToken: 'any',
      })
      expect(verified).toMatchObject({ valid: false, answer: { status: 200 } })
    },
  )
})
