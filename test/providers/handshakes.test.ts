import { createHmac } from 'node:crypto'
import {
  createReceiver,
  type HandshakeMessage,
  memoryStore,
  type ObserverEvent,
  type ProviderName,
  type Receipt,
} from '@webhook-inbox/core'
import { type SignRequestOptions, signRequest } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { credentialsOf, entryOf } from './keys.ts'

function site(
  provider: ProviderName,
  options: {
    readonly verifyToken?: string
    readonly onHandshake?: (handshake: HandshakeMessage) => unknown
  } = {},
) {
  const entry = entryOf(provider)
  const { secret = '', privateKey } = credentialsOf(entry)
  const events: ObserverEvent[] = []
  let runs = 0
  const receiver = createReceiver({
    provider,
    secret,
    store: memoryStore(),
    handler: () => void runs++,
    observer: (event) => void events.push(event),
    onError: () => {},
    ...options,
  })
  const receive = async (
    method: string,
    url: string,
    headers: Readonly<Record<string, string>> = {},
    body = '',
  ) => {
    const receipt = await receiver.receive(
      { method, url, headers, body: new TextEncoder().encode(body) },
      undefined,
    )
    return answerOf(receipt)
  }
  const sendSigned = async (sending: Omit<SignRequestOptions, 'secret'> & { body?: string }) => {
    const key = privateKey === undefined ? { secret } : { secret, privateKey }
    const { headers, body } = await signRequest(provider, { ...key, ...sending })
    return receive('POST', '/', headers, String(body))
  }
  return { secret, events, runs: () => runs, receive, sendSigned }
}

function answerOf(receipt: Receipt) {
  if (receipt.status === 'claimed') throw new Error('claimed')
  const { status, headers, body } = receipt.answer
  return { state: receipt.status, status, headers, body }
}

describe('handshakes', () => {
  it('Slack: a signed url_verification is echoed', async () => {
    const { sendSigned, events, runs } = site('slack')
    const payload = { type: 'url_verification', challenge: '3eZbrw1aB', token: 't' }
    const answer = await sendSigned({ event: 'x', payload })
    expect(answer).toMatchObject({ state: 'handshake', status: 200 })
    expect(JSON.parse(answer.body)).toEqual({ challenge: '3eZbrw1aB' })
    expect(events).toEqual([{ type: 'handshake', provider: 'slack', name: 'url_verification' }])
    expect(runs()).toBe(0)
  })

  it('Slack: an unsigned or wrongly signed url_verification is refused', async () => {
    const { receive, runs } = site('slack')
    const body = JSON.stringify({ type: 'url_verification', challenge: 'x' })
    const type = { 'content-type': 'application/json' }
    expect(await receive('POST', '/', type, body)).toMatchObject({ status: 401 })
    const forged = { ...type, 'x-slack-signature': 'v0=00', 'x-slack-request-timestamp': '1' }
    expect(await receive('POST', '/', forged, body)).toMatchObject({ status: 401 })
    expect(runs()).toBe(0)
  })

  it('Slack: ssl_check is answered, and lets nothing past the signature', async () => {
    const { receive, runs, sendSigned } = site('slack')
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const check = await receive('POST', '/', form, 'ssl_check=1&token=x')
    expect(check).toMatchObject({ state: 'handshake', status: 200, body: '' })
    // With a command beside it, unsigned: still only the check.
    await receive('POST', '/', form, 'ssl_check=1&command=%2Fdeploy&text=now')
    const forged = { ...form, 'x-slack-signature': 'v0=00', 'x-slack-request-timestamp': '1' }
    const bad = await receive('POST', '/', forged, 'ssl_check=1&command=%2Fdeploy')
    expect(bad).toMatchObject({ status: 401 })
    expect(await receive('POST', '/', form, 'command=%2Fdeploy')).toMatchObject({ status: 401 })
    expect(runs()).toBe(0)
    // Signed, it is a command like any other.
    const body = 'command=%2Fdeploy&trigger_id=1.2&ssl_check=1'
    expect(await sendSigned({ event: '/deploy', body, headers: form })).toMatchObject({
      state: 'completed',
    })
    expect(runs()).toBe(1)
  })

  it('Zoom: proves that it knows the secret', async () => {
    const { sendSigned, secret } = site('zoom')
    const plainToken = 'qgg8vlvZRS6UYooatFL8Aw'
    const answer = await sendSigned({
      event: 'endpoint.url_validation',
      payload: { payload: { plainToken } },
    })
    expect(answer).toMatchObject({ state: 'handshake', status: 200 })
    const encryptedToken = createHmac('sha256', secret).update(plainToken).digest('hex')
    expect(JSON.parse(answer.body)).toEqual({ plainToken, encryptedToken })
  })

  it('Discord: both pings, and 401 for the wrong signatures that it sends on purpose', async () => {
    const { sendSigned, receive, runs } = site('discord')
    const interaction = await sendSigned({ event: 'x', payload: { type: 1, id: '1' } })
    expect(interaction).toMatchObject({ status: 200, body: '{"type":1}' })
    const webhook = await sendSigned({ event: 'x', payload: { type: 0 } })
    expect(webhook).toMatchObject({ status: 204, body: '' })
    expect(webhook.headers['content-type']).toBe('application/json')
    const forged = { 'x-signature-ed25519': '0'.repeat(128), 'x-signature-timestamp': '1' }
    expect(await receive('POST', '/', forged, '{"type":1}')).toMatchObject({ status: 401 })
    expect(runs()).toBe(0)
    // An event of type 1 is no ping; its sender wants 204.
    const event = await sendSigned({
      event: 'APPLICATION_AUTHORIZED',
      payload: { type: 1, event: { type: 'APPLICATION_AUTHORIZED' } },
    })
    expect(event).toMatchObject({ state: 'completed', status: 204, body: '' })
    expect(runs()).toBe(1)
  })

  it('Meta: the challenge, for those who know the token', async () => {
    const { receive } = site('meta-whatsapp', { verifyToken: 'meatyhamhock' })
    const ask = (token: string) =>
      receive('GET', `/?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=${token}`)
    expect(await ask('meatyhamhock')).toMatchObject({ status: 200, body: '1158201444' })
    expect(await ask('nope')).toMatchObject({ status: 403 })
    expect(await receive('GET', '/?hub.mode=subscribe&hub.challenge=1')).toMatchObject({
      status: 403,
    })
    expect(await receive('GET', '/')).toMatchObject({
      status: 405,
      headers: { allow: 'POST, GET' },
    })
    const without = site('meta-whatsapp')
    expect(
      await without.receive('GET', '/?hub.mode=subscribe&hub.challenge=1&hub.verify_token='),
    ).toMatchObject({ status: 403 })
  })

  it('a challenge comes back as text that no browser runs', async () => {
    const { receive } = site('dropbox')
    const challenge = encodeURIComponent('<script>alert(1)</script>')
    const answer = await receive('GET', `/?challenge=${challenge}`)
    expect(answer).toMatchObject({ status: 200, body: '<script>alert(1)</script>' })
    expect(answer.headers).toMatchObject({
      'content-type': expect.stringMatching(/^text\/plain/),
      'x-content-type-options': 'nosniff',
    })
  })

  it('Okta: a header comes back as JSON', async () => {
    const { receive } = site('okta')
    const answer = await receive('GET', '/', { 'x-okta-verification-challenge': 'abc"<' })
    expect(JSON.parse(answer.body)).toEqual({ verification: 'abc"<' })
  })

  it('Asana: the secret comes back in a header, and line breaks do not', async () => {
    const { receive } = site('asana')
    const answer = await receive('POST', '/', { 'x-hook-secret': 'b5\r\nset-cookie: a=b' }, '{}')
    expect(answer).toMatchObject({ status: 200 })
    expect(answer.headers['x-hook-secret']).toBe('b5set-cookie: a=b')
  })

  it('Asana: a heartbeat is no delivery', async () => {
    const { sendSigned, runs } = site('asana')
    expect(await sendSigned({ event: 'x', body: '{"events":[]}' })).toMatchObject({
      state: 'ping',
      status: 200,
    })
    expect(runs()).toBe(0)
  })

  it('Notion: the token is answered, and seen by nobody', async () => {
    const { receive, events, runs } = site('notion')
    const body = JSON.stringify({
      verification_token: 'secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl',
    })
    expect(await receive('POST', '/', { 'content-type': 'application/json' }, body)).toMatchObject({
      status: 200,
      body: '',
    })
    expect(JSON.stringify(events)).not.toContain('secret_')
    expect(runs()).toBe(0)
  })

  it('Notion and Asana: what holds the secret hears it before the answer, and can refuse', async () => {
    const heard: HandshakeMessage[] = []
    const notion = site('notion', { onHandshake: (handshake) => void heard.push(handshake) })
    const type = { 'content-type': 'application/json' }
    await notion.receive('POST', '/', type, '{"verification_token":"secret_1"}')
    expect(heard).toMatchObject([
      {
        provider: 'notion',
        name: 'verification_token',
        signed: false,
        payload: { verification_token: 'secret_1' },
      },
    ])
    const asana = site('asana', {
      onHandshake: async () => {
        throw new Error('the database is down')
      },
    })
    const answer = await asana.receive('POST', '/', { 'x-hook-secret': 's' }, '{}')
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    expect(answer.headers['x-hook-secret']).toBeUndefined()
    expect(() => site('shopify', { onHandshake: () => {} })).toThrow(/"onHandshake" has no meaning/)
  })

  it('Twitch: the challenge as text; a revocation is an event', async () => {
    const { sendSigned, runs } = site('twitch')
    const verification = await sendSigned({
      event: 'channel.follow',
      payload: { challenge: 'pogchamp' },
      headers: { 'twitch-eventsub-message-type': 'webhook_callback_verification' },
    })
    expect(verification).toMatchObject({ state: 'handshake', status: 200, body: 'pogchamp' })
    const revocation = await sendSigned({
      event: 'channel.follow',
      payload: { subscription: { status: 'authorization_revoked' } },
      headers: { 'twitch-eventsub-message-type': 'revocation' },
    })
    expect(revocation).toMatchObject({ state: 'completed', status: 200 })
    expect(runs()).toBe(1)
  })

  it('Event Grid: the validation code, and the origin of CloudEvents', async () => {
    const { sendSigned, receive } = site('event-grid')
    const validation = await sendSigned({
      event: 'x',
      body: JSON.stringify([{ data: { validationCode: '512d38b6' } }]),
      headers: { 'aeg-event-type': 'SubscriptionValidation' },
    })
    expect(JSON.parse(validation.body)).toEqual({ validationResponse: '512d38b6' })
    const options = await receive('OPTIONS', '/', { 'webhook-request-origin': 'eventgrid.example' })
    expect(options.headers['webhook-allowed-origin']).toBe('eventgrid.example')
  })

  it('Xero: the intent to receive is 200 without a body when it is signed, else 401', async () => {
    const { sendSigned, receive } = site('xero')
    const body =
      '{"events":[],"firstEventSequence":0,"lastEventSequence":0,"entropy":"S0m3r4Nd0mt3xt"}'
    expect(await sendSigned({ event: 'x', body })).toMatchObject({ status: 200, body: '' })
    expect(await receive('POST', '/', { 'x-xero-signature': 'bm9wZQ==' }, body)).toMatchObject({
      status: 401,
    })
  })
})

describe('what a sender hears so that it repeats or stops', () => {
  it('Slack: a dead delivery says that there is no use in retrying', async () => {
    const secret = 'the signing secret'
    const receiver = createReceiver({
      provider: 'slack',
      secret,
      store: memoryStore(),
      onError: () => {},
      handler: (webhook) => webhook.fail(undefined, { retryable: false }),
    })
    const { headers, body } = await signRequest('slack', { secret, event: 'app_mention' })
    const request = { method: 'POST', url: '/', headers, body: new TextEncoder().encode(body) }
    for (const status of [422, 202]) {
      const answer = answerOf(await receiver.receive(request, undefined))
      expect(answer).toMatchObject({ status, headers: { 'x-slack-no-retry': '1' } })
    }
  })

  it('Slack: the observer hears the number and the reason of a retry', async () => {
    const { sendSigned, events } = site('slack')
    await sendSigned({
      event: 'app_mention',
      headers: { 'x-slack-retry-num': '2', 'x-slack-retry-reason': 'http_timeout' },
    })
    expect(events[0]).toMatchObject({
      type: 'verified',
      retryNumber: '2',
      retryReason: 'http_timeout',
    })
  })

  it.each(['auth0', 'okta'] as const)(
    '%s: a wrong token is a 503, for a 4xx would be the last attempt',
    async (provider) => {
      const { receive } = site(provider)
      const answer = await receive('POST', '/', { authorization: 'Bearer wrong' }, '{}')
      expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
    },
  )

  it('no answer to a copy in hand is one that a sender gives up on', async () => {
    for (const provider of ['auth0', 'mailgun', 'postmark', 'standard-webhooks'] as const) {
      const entry = entryOf(provider)
      const { secret = '' } = credentialsOf(entry)
      let release = (): void => {}
      const held = new Promise<void>((resolve) => {
        release = resolve
      })
      let runs = 0
      const receiver = createReceiver({
        provider,
        secret,
        store: memoryStore(),
        handler: async () => {
          runs += 1
          await held
        },
      })
      const { headers, body } = await signRequest(provider, { secret, event: 'a.b' })
      const request = { method: 'POST', url: '/', headers, body: new TextEncoder().encode(body) }
      const first = receiver.receive(request, undefined)
      await expect.poll(() => runs).toBe(1)
      const copy = answerOf(await receiver.receive(request, undefined))
      expect(copy.status).toBe(503)
      expect(entry.stopStatuses ?? []).not.toContain(copy.status)
      release()
      await first
    }
  })
})
