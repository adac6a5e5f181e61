import { readFileSync } from 'node:fs'
import { verify } from '@webhook-inbox/core'
import { messagebird } from '@webhook-inbox/core/jwt'
import { describe, expect, it } from 'vitest'

interface ReferenceCase {
  readonly name: string
  readonly method: string
  readonly url: string
  readonly secret?: string
  readonly payload?: string
  readonly timestamp: string
  readonly token: string
  readonly valid: boolean
}

/** The requests that MessageBird ships with its library, made by MessageBird. */
const cases: readonly ReferenceCase[] = JSON.parse(
  readFileSync(
    new URL(
      'node_modules/messagebird/lib/testdata/webhook-signature-jwt-reference.json',
      import.meta.url,
    ),
    'utf8',
  ),
)

describe('the reference cases of messagebird@4.0.1', () => {
  it('are all there', () => {
    expect(cases).toHaveLength(44)
    expect(cases.filter(({ valid }) => valid)).toHaveLength(24)
  })

  it.each(cases)('$name', async ({ method, url, secret, payload, timestamp, token, valid }) => {
    const verified = await verify(messagebird, {
      method,
      url,
      headers: { 'messagebird-signature-jwt': token, 'content-type': 'application/json' },
      body: Buffer.from(payload ?? ''),
      // A token without an algorithm has none.
      secret: secret === undefined || secret === '' ? 'unused' : secret,
      now: new Date(timestamp),
    })
    expect(verified.valid).toBe(valid)
  })
})
