/** Certificates and keys that a request names by an address. */
import { randomBytes } from 'node:crypto'
import { createReceiver, memoryStore, verify } from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { credentialsOf, entryOf, rsaPem } from './keys.ts'
import { bytes, json, site, snsMessage } from './support.ts'

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

describe('keys that a sender names by an address', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })
  const sns = entryOf('aws-sns')
  const paypal = entryOf('paypal')

  const addresses = [
    'http://sns.us-east-1.amazonaws.com/a.pem',
    'https://sns.us-east-1.amazonaws.com.evil.test/a.pem',
    'https://evil.test/sns.us-east-1.amazonaws.com/a.pem',
    'https://sns.us-east-1.amazonaws.com@evil.test/a.pem',
    'https://sns.us-east-1.amazonaws.com:8443/a.pem',
    'https://s3.us-east-1.amazonaws.com/bucket/a.pem',
    'https://sns.us-east-1.amazonaws.com/a.txt',
    'https://sns.us-east-1.amazonaws.com/a.pem?x=.pem',
    'https://sns.us-east-1.amazonaws.com/a.pem#.pem',
    'https://169.254.169.254/a.pem',
    'file:///etc/passwd.pem',
    'https://sns.us-east-1.amazonaws.com\\@evil.test/a.pem',
    'https://sns.us-east-1.amazonaws.com/\r\nHost: evil.test/a.pem',
  ]

  it.each(addresses)('SNS fetches nothing from %s', async (SigningCertURL) => {
    const asked = vi.spyOn(globalThis, 'fetch')
    const { secret = '', privateKey = '' } = credentialsOf(sns)
    const payload = { SigningCertURL, Message: 'x' }
    const { headers, body } = await signRequest('aws-sns', {
      secret,
      privateKey,
      event: 'Notification',
      payload,
    })
    const keyAsked = vi.fn()
    for (const keys of [undefined, keyAsked]) {
      const verified = await verify('aws-sns', {
        headers,
        body: bytes(body),
        secret,
        ...(keys === undefined ? {} : { keys }),
      })
      expect(verified.valid).toBe(false)
    }
    expect(asked).not.toHaveBeenCalled()
    expect(keyAsked).not.toHaveBeenCalled()
  })

  it.each([
    'https://paypal.com.evil.test/cert',
    'https://evil.test/paypal.com',
    'http://api.paypal.com/cert',
    'https://api.paypal.com:444/cert',
    'https://notpaypal.com/cert',
    'https://api.paypal.com@evil.test/cert',
  ])('PayPal fetches nothing from %s', async (address) => {
    const asked = vi.spyOn(globalThis, 'fetch')
    const { secret = '', privateKey = '' } = credentialsOf(paypal)
    const { headers, body } = await signRequest('paypal', { secret, privateKey, event: 'x' })
    const forged = { ...headers, 'paypal-cert-url': address }
    const verified = await verify('paypal', { headers: forged, body: bytes(body), secret })
    expect(verified.valid).toBe(false)
    expect(asked).not.toHaveBeenCalled()
  })

  it('a certificate is fetched once, again after a failure, and never by a redirect', async () => {
    const { secret = '', privateKey = '', keys } = credentialsOf(sns)
    const pem = String(await keys?.({}))
    const url = `https://sns.eu-north-1.amazonaws.com/SimpleNotificationService-${randomBytes(8).toString('hex')}.pem`
    const sent = await signRequest('aws-sns', {
      secret,
      privateKey,
      event: 'Notification',
      payload: { SigningCertURL: url, Message: 'x' },
    })
    const judge = () => verify('aws-sns', { headers: sent.headers, body: bytes(sent.body), secret })
    const asked = vi
      .spyOn(globalThis, 'fetch')
      .mockRejectedValueOnce(new TypeError('fetch failed'))
      .mockResolvedValueOnce(new Response('no', { status: 500 }))
      .mockImplementation(async () => new Response(pem))
    expect(await judge()).toMatchObject({ valid: false, code: 'key_unavailable' })
    expect(await judge()).toMatchObject({ valid: false, code: 'key_unavailable' })
    expect(await judge()).toMatchObject({ valid: true })
    expect(await judge()).toMatchObject({ valid: true })
    expect(asked).toHaveBeenCalledTimes(3)
    expect(asked.mock.calls[0]).toMatchObject([url, { redirect: 'error' }])
  })

  it("SNS: another account's topic is refused", async () => {
    const { secret = '', privateKey = '', keys } = credentialsOf(sns)
    const theirs = await signRequest('aws-sns', {
      secret: 'arn:aws:sns:us-east-1:666:evil',
      privateKey,
      event: 'Notification',
    })
    const verified = await verify('aws-sns', {
      headers: theirs.headers,
      body: bytes(theirs.body),
      secret,
      ...(keys === undefined ? {} : { keys }),
    })
    expect(verified).toMatchObject({ valid: false, code: 'signature_mismatch' })
  })
})
