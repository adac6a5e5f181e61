import { signatureHeaders, verify } from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'

const secret = "It's a Secret to Everybody"
const body = new TextEncoder().encode('Hello, World!')

describe('signatureHeaders', () => {
  it("gives GitHub's published signature", async () => {
    expect(await signatureHeaders('github', { secret, body })).toEqual({
      'x-hub-signature-256':
        'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    })
  })

  it('gives what verify accepts', async () => {
    const signed = await signatureHeaders('github', { secret, body })
    const headers = { ...signed, 'x-github-event': 'push', 'x-github-delivery': 'd-1' }
    expect((await verify('github', { headers, body, secret })).valid).toBe(true)
  })

  it('refuses a blank secret', async () => {
    await expect(signatureHeaders('github', { secret: ' ', body })).rejects.toMatchObject({
      code: 'ERR_OPTION',
    })
  })
})
