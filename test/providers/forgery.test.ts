import { createHmac, generateKeyPairSync, randomBytes } from 'node:crypto'
import {
  createReceiver,
  memoryStore,
  type Provider,
  type VerifyRequest,
  verify,
} from '@webhook-inbox/core'
import { googlePubsub, livekit, netlify, plaid } from '@webhook-inbox/core/jwt'
import { signRequest } from '@webhook-inbox/testkit'
import fc from 'fast-check'
import { importJWK, SignJWT } from 'jose'
import { describe, expect, it } from 'vitest'
import { allEntries, credentialsOf, entryOf, headersFor } from './keys.ts'
import { bytes } from './support.ts'

const whsec = (raw: Uint8Array): string => `whsec_${Buffer.from(raw).toString('base64')}`

async function standard(secret: string, id: string, body: string, family = 'webhook') {
  const time = String(Math.floor(Date.now() / 1000))
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${time}.${body}`).digest('base64')
  return {
    [`${family}-id`]: id,
    [`${family}-timestamp`]: time,
    [`${family}-signature`]: `v1,${signature}`,
  }
}

describe('a captured request under another name', () => {
  const secret = whsec(randomBytes(32))
  const body = '{"type":"contact.created"}'

  it.each(['standard-webhooks', 'svix'] as const)(
    '%s: the id is that of the headers that prove it',
    async (provider) => {
      const genuine = await standard(secret, 'msg_genuine', body, 'svix')
      const forged = {
        ...genuine,
        'webhook-id': 'msg_forged',
        'webhook-timestamp': '1',
        'webhook-signature': 'v1,AAAA',
      }
      const verified = await verify(provider, { headers: forged, body: bytes(body), secret })
      if (!verified.valid) throw new Error(verified.code)
      expect(verified.delivery.id).toBe('msg_genuine')
    },
  )

  it('GitLab: a signed request is known by its signed id, not by the header beside it', async () => {
    const genuine = await standard(secret, 'msg_genuine', body)
    const headers = { ...genuine, 'idempotency-key': 'forged', 'x-gitlab-event-uuid': 'forged' }
    const verified = await verify('gitlab', { headers, body: bytes(body), secret })
    if (!verified.valid) throw new Error(verified.code)
    expect(verified.delivery.id).toBe('msg_genuine')
  })

  it('a signing token is never taken for a plain token that an attacker can guess', async () => {
    const headers = { 'x-gitlab-token': 'whsec_', 'idempotency-key': '1' }
    const verified = await verify('gitlab', { headers, body: bytes(body), secret })
    expect(verified).toMatchObject({ valid: false, code: 'signature_mismatch' })
  })

  it('a header that stands there twice proves nothing twice', async () => {
    const genuine = await standard(secret, 'msg_1', body)
    const headers = new Headers(genuine)
    headers.append('webhook-id', 'msg_2')
    const verified = await verify('standard-webhooks', { headers, body: bytes(body), secret })
    expect(verified.valid).toBe(false)
  })
})

describe('tokens', () => {
  const body = '{"event":"room_started","id":"EV_1"}'
  const secret = 'a secret of thirty-two characters'

  async function token(claims: Record<string, unknown>, alg = 'HS256', key: string = secret) {
    return new SignJWT(claims).setProtectedHeader({ alg }).sign(bytes(key))
  }

  it('without a signature, or by another algorithm, are refused', async () => {
    const { createHash } = await import('node:crypto')
    const sha256 = createHash('sha256').update(body).digest('hex')
    const good = await token({ iss: 'netlify', sha256 })
    const [, claims = ''] = good.split('.')
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${claims}.`
    for (const [jwt, valid] of [
      [good, true],
      [none, false],
      [await token({ iss: 'netlify', sha256 }, 'HS512'), false],
      [await token({ iss: 'other', sha256 }), false],
      [await token({ sha256 }), false],
      [await token({ iss: 'netlify' }), false],
      [await token({ iss: 'netlify', sha256: [sha256] }), false],
      [await token({ iss: 'netlify', sha256 }, 'HS256', 'another'), false],
      ['', false],
      ['a.b.c', false],
      ['....', false],
    ] as const) {
      const headers = { 'x-webhook-signature': jwt }
      const verified = await verify(netlify, { headers, body: bytes(body), secret })
      expect(verified.valid).toBe(valid)
    }
  })

  it('that are over are told as such', async () => {
    const at = Math.floor(Date.now() / 1000)
    const claims = { iss: 'k', sha256: 'x', exp: at - 60 }
    const headers = { authorization: await token(claims) }
    const verified = await verify(livekit, { headers, body: bytes(body), secret: `k:${secret}` })
    expect(verified).toMatchObject({ valid: false, code: 'timestamp_out_of_tolerance' })
  })

  it('Plaid: a public key is never taken for a shared one', async () => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const jwk = { ...publicKey.export({ format: 'jwk' }) }
    const shared = publicKey.export({ type: 'spki', format: 'pem' }).toString()
    for (const key of [shared, JSON.stringify(jwk)]) {
      const jwt = await new SignJWT({ request_body_sha256: 'x' })
        .setProtectedHeader({ alg: 'HS256', kid: '1' })
        .setIssuedAt()
        .sign(bytes(key))
      const headers = { 'plaid-verification': jwt }
      const verified = await verify(plaid, { headers, body: bytes(body), keys: () => jwk })
      expect(verified.valid).toBe(false)
    }
  })

  it('Plaid: a key that cannot be had is asked for again later', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const key = await importJWK({ ...privateKey.export({ format: 'jwk' }) }, 'ES256')
    const jwt = await new SignJWT({}).setProtectedHeader({ alg: 'ES256', kid: '1' }).sign(key)
    const headers = { 'plaid-verification': jwt }
    for (const keys of [() => undefined, () => Promise.reject(new Error('down'))]) {
      const verified = await verify(plaid, { headers, body: bytes(body), keys })
      expect(verified).toMatchObject({ valid: false, code: 'key_unavailable' })
    }
    const receiver = createReceiver({
      provider: plaid,
      store: memoryStore(),
      keys: () => undefined,
      handler: () => {},
    })
    const receipt = await receiver.receive(
      { method: 'POST', url: '/', headers, body: bytes(body) },
      undefined,
    )
    expect(receipt).toMatchObject({ status: 'refused', answer: { status: 503 } })
  })

  it("Pub/Sub: another account's token for our audience is refused", async () => {
    const { privateKey = '', keys } = credentialsOf(googlePubsub)
    const send = (secret: string) =>
      signRequest(googlePubsub, { secret, privateKey, event: 'message', deliveryId: '1' })
    const ours = 'https://hooks.example.test/push push@p.iam.gserviceaccount.com'
    const judge = async (request: { headers: Record<string, string>; body: string }) =>
      verify(googlePubsub, {
        ...request,
        body: bytes(request.body),
        secret: ours,
        ...(keys === undefined ? {} : { keys }),
      })
    expect((await judge(await send(ours))).valid).toBe(true)
    for (const theirs of [
      'https://hooks.example.test/push evil@q.iam.gserviceaccount.com',
      'https://hooks.example.test/push',
      'https://other.example.test/push push@p.iam.gserviceaccount.com',
    ])
      expect((await judge(await send(theirs))).valid).toBe(false)
  })
})

describe('any request at all', () => {
  const names = allEntries.flatMap((entry) => [entry.name])

  it.each(names)('%s: never crashes, and is never taken for genuine', async (name) => {
    const entry = entryOf(name)
    const { secret, keys } = credentialsOf(entry)
    const headers = [...new Set([entry.signature].flat().flatMap(({ header = [] }) => header))]
    const times = [entry.signature]
      .flat()
      .flatMap((one) =>
        'timestamp' in one && one.timestamp?.header !== undefined ? [one.timestamp.header] : [],
      )
    const value = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc.constantFrom('', 't=1,v1=', 'v1,', 'sha256=', '0', 'v1,AAAA', '=,=', '{}', 'a.b.c', '%'),
    )
    const some = fc.dictionary(
      fc.constantFrom(...headers, ...times, 'content-type', '__proto__', 'authorization', 'host'),
      value,
      { maxKeys: 6 },
    )
    const body = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.json({ maxDepth: 3 }).map(bytes),
      fc
        .constantFrom(
          '{"notificationItems":[{"NotificationRequestItem":{"additionalData":{"hmacSignature":""}}}]}',
          '{"signature":{"timestamp":"1","token":"","signature":""}}',
          'bt_signature=|&bt_payload=',
          '{"Type":"Notification","Signature":"AAAA","SignatureVersion":"1","SigningCertURL":"https://sns.us-east-1.amazonaws.com/a.pem"}',
          '[]',
          'null',
          `${'['.repeat(5000)}`,
        )
        .map(bytes),
    )
    await fc.assert(
      fc.asyncProperty(some, body, value, async (given, sent, query) => {
        const request: VerifyRequest = {
          headers: given,
          body: sent,
          url: `https://hooks.example.test/in?${query}`,
          ...(secret === undefined ? {} : { secret }),
          keys: keys ?? (() => undefined),
        }
        expect((await verify(entry, request)).valid).toBe(false)
      }),
      { numRuns: 60 },
    )
  })

  it.each(names)('%s: a genuine request with odd content is taken, never a crash', async (name) => {
    const entry = entryOf(name)
    const { secret, keys, privateKey } = credentialsOf(entry)
    const url = 'https://hooks.example.test/in'
    for (const text of [
      'null',
      '[]',
      '{}',
      '"text"',
      '7',
      '{"__proto__":{"a":1}}',
      '[null,1,"a",{}]',
      // Deeper than JSON.stringify goes.
      `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
    ]) {
      const request = await signRequest(entry, {
        ...(secret === undefined ? {} : { secret }),
        ...(privateKey === undefined ? {} : { privateKey }),
        event: 'a.b',
        url,
        ...(isMadeOfPayload(entry) ? { payload: JSON.parse(text) ?? {} } : { body: text }),
        headers: headersFor(entry, 0),
      }).catch((error: unknown) => String(error))
      if (typeof request === 'string') continue // what a sender cannot say is told by signRequest
      const receiver = createReceiver({
        provider: entry,
        ...(secret === undefined ? {} : { secret }),
        ...(keys === undefined ? {} : { keys }),
        publicUrl: url,
        store: memoryStore(),
        handler: () => {},
      })
      const receipt = await receiver.receive(
        {
          method: 'POST',
          url: request.query === undefined ? '/in' : `/in?${request.query}`,
          headers: request.headers,
          body: bytes(request.body),
        },
        undefined,
      )
      if (receipt.status === 'claimed') throw new Error('claimed')
      expect([200, 202, 204, 400, 401, 503]).toContain(receipt.answer.status)
    }
    expect(Reflect.get({}, 'a')).toBeUndefined()
  })
})

function isMadeOfPayload(entry: Provider): boolean {
  return [entry.signature].flat()[0]?.scheme === 'function' || entry.name === 'twilio'
}

describe('ids', () => {
  it('that are too large to be exact tell two events apart all the same', async () => {
    const seen = new Set<string>()
    for (const id of ['9007199254740993', '9007199254740992']) {
      const body = `{"id":${id},"type":"x"}`
      const { headers } = await signRequest('stripe', { secret: 's', event: 'x', body })
      const verified = await verify('stripe', { headers, body: bytes(body), secret: 's' })
      if (verified.valid) seen.add(verified.delivery.id)
    }
    expect(seen.size).toBe(2)
  })
})
