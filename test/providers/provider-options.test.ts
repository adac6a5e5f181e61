/** Secrets, keys and options: what is wrong is told at construction. */
import { createHash, randomBytes } from 'node:crypto'
import { createReceiver, type KeySource, memoryStore, verify } from '@webhook-inbox/core'
import { googlePubsub, netlify, plaid } from '@webhook-inbox/core/jwt'
import { signRequest } from '@webhook-inbox/testkit'
import { exportJWK, SignJWT } from 'jose'
import { describe, expect, it, vi } from 'vitest'
import { credentialsOf, entryOf, p256, rsa, rsaPem } from './keys.ts'
import { bytes, hmac } from './support.ts'

describe('secrets', () => {
  it.each([
    ['adyen', 'not hex'],
    ['sendgrid', '!!!'],
    ['discord', 'abc'],
    ['standard-webhooks', 'whsec_!!!'],
    ['telnyx', 'AAAA'],
    ['kick', 'no pem'],
  ] as const)('%s: %s is told at construction', (provider, secret) => {
    expect(() =>
      createReceiver({ provider, secret, store: memoryStore(), handler: () => {} }),
    ).toThrow(/"secret" is not /)
  })

  it('are required of SNS, for anybody has a topic', () => {
    expect(() => createReceiver({ provider: 'aws-sns', store: memoryStore() })).toThrow(
      /"secret" is missing.*topic's ARN/,
    )
  })

  it('and options that nothing would read are told', () => {
    const make = (provider: 'github' | 'telegram', options: object) => () =>
      createReceiver({ provider, secret: 's', store: memoryStore(), ...options })
    expect(make('github', { toleranceMs: 1000 })).toThrow(/"toleranceMs" has no meaning for github/)
    expect(make('telegram', { keys: () => undefined })).toThrow(
      /"keys" has no meaning for telegram/,
    )
    expect(make('github', { verifyToken: 'x' })).toThrow(/"verifyToken" has no meaning for github/)
  })

  it('of several kinds may stand in one list', async () => {
    const old = `whsec_${randomBytes(32).toString('base64')}`
    const { secret = '', privateKey = '' } = credentialsOf(entryOf('standard-webhooks'), 1)
    for (const sending of [{ secret: old }, { secret, privateKey, scheme: 1 }]) {
      const { headers, body } = await signRequest('standard-webhooks', { ...sending, event: 'x' })
      const verified = await verify('standard-webhooks', {
        headers,
        body: bytes(body),
        secret: [old, secret],
      })
      expect(verified.valid).toBe(true)
    }
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
    [{ provider: 'line', secret: 's', inFlight: 'accept' }, /inFlight: 'accept' has no meaning/],
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
