import { createReceiver, memoryStore, type ProviderName, verify } from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'

// What a header shows, what people type into a form, and what they copy.
const basic = Buffer.from('häns:pass:word').toString('base64')
const cases: readonly [ProviderName, string, readonly string[]][] = [
  ['postmark', `Basic ${basic}`, ['häns:pass:word', basic, `Basic ${basic}`]],
  ['azure-devops', `Basic ${basic}`, ['häns:pass:word', basic, `Basic ${basic}`]],
  ['auth0', 'Bearer abc-123', ['abc-123', 'Bearer abc-123']],
  ['supabase', 'Bearer abc-123', ['abc-123', 'Bearer abc-123']],
  ['okta', 'abc-123', ['abc-123']],
]

describe.each(cases)('the token of %s', (provider, authorization, secrets) => {
  const judge = async (authorization: string, secret: string) => {
    const { body } = await signRequest(provider, { secret })
    return verify(provider, { headers: { authorization }, body: Buffer.from(body), secret })
  }

  it.each(secrets)('is taken as %j', async (secret) => {
    expect((await judge(authorization, secret)).valid).toBe(true)
    const { headers } = await signRequest(provider, { secret })
    expect(new Headers(headers).get('authorization')).toBe(authorization)
  })

  it.each(secrets)('and nothing but it, given as %j', async (secret) => {
    const others = [
      ...authorization.split(' ').map((part) => `${part} `),
      authorization.slice(0, -1),
      authorization.slice(1),
      `${authorization}x`,
      authorization.replace(' ', '  '),
    ].filter((other) => other.trim() !== authorization)
    for (const other of others) expect((await judge(other, secret)).valid).toBe(false)
  })
})

it('a secret that no request could match is told when the receiver is made', () => {
  for (const [provider, secret] of [
    ['auth0', 'Bearer '],
    ['postmark', 'Basic '],
    // A password without its user, and a text that is no ARN: no request could ever match.
    ['postmark', 'password'],
    ['azure-devops', 'cGFzc3dvcmQ='],
    ['aws-sns', 'my-topic'],
  ] as const) {
    expect(() => createReceiver({ provider, secret, store: memoryStore() })).toThrow(
      expect.objectContaining({ code: 'ERR_OPTION' }),
    )
  }
})
