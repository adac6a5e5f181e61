import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sign as octokitSign, verify as octokitVerify } from '@octokit/webhooks-methods'
import { type ProviderName, verify } from '@webhook-inbox/core'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

interface Vector {
  readonly provider: ProviderName
  readonly name: string
  readonly secret: string
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly valid: boolean
  readonly now: number
}

const folder = join(import.meta.dirname, 'vectors')
const vectors = readdirSync(folder).flatMap((file): readonly Vector[] =>
  JSON.parse(readFileSync(join(folder, file), 'utf8')),
)
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

describe('requests that were signed by others', () => {
  it.each(vectors)('$provider: $name', async ({ provider, valid, body, now, ...request }) => {
    const verified = await verify(provider, {
      ...request,
      body: bytesOf(body),
      now: new Date(now * 1000),
    })
    expect(verified.valid).toBe(valid)
  })

  it("GitHub's published example", async () => {
    const verified = await verify('github', {
      headers: {
        'x-github-event': 'push',
        'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
        'x-hub-signature-256':
          'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
      },
      body: bytesOf('Hello, World!'),
      secret: "It's a Secret to Everybody",
    })
    expect(verified.valid).toBe(true)
  })

  it('agrees with @octokit/webhooks-methods on any secret, body and signature', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ minLength: 1, unit: 'grapheme' }).filter((text) => text.trim() !== ''),
        fc.string({ minLength: 1, unit: 'grapheme' }),
        fc.nat(),
        async (secret, body, at) => {
          const signature = await octokitSign(secret, body)
          const index = 7 + (at % 64)
          const changed = `${signature.slice(0, index)}${signature[index] === '0' ? '1' : '0'}${signature.slice(index + 1)}`
          for (const given of [signature, changed]) {
            const ours = await verify('github', {
              headers: {
                'x-github-event': 'push',
                'x-github-delivery': '1',
                'x-hub-signature-256': given,
              },
              body: bytesOf(body),
              secret,
            })
            expect(ours.valid).toBe(await octokitVerify(secret, body, given))
          }
        },
      ),
      { numRuns: 200 },
    )
  })
})
