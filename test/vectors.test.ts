import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createReceiver, memoryStore, verify } from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'
import { entryOf, requestOf, type Vector } from './vector.ts'

const folder = join(import.meta.dirname, 'vectors')
const vectors = readdirSync(folder).flatMap((file): readonly Vector[] =>
  JSON.parse(readFileSync(join(folder, file), 'utf8')),
)

/**
 * Where a provider's library decides what can be doubted, and what this library decides. Both directions of a tolerance
 * are judged: a signature from the future is as good as one without a time. A clock that is a second ahead is no attack.
 */
const decided: Readonly<Record<string, { readonly valid: boolean; readonly why: string }>> = {
  'slack: edge-future-timestamp-accepted-by-sdk': {
    valid: false,
    why: 'the tolerance holds in both directions, as the documentation of Slack has it',
  },
  'box: future-1s-rejected-by-sdk': {
    valid: true,
    why: 'a second ahead is what two clocks differ by; ten minutes are allowed either way',
  },
  'paddle: stale-6s-by-sdk-default': {
    valid: false,
    why: 'as the library of Paddle has it; toleranceMs widens it',
  },
  'openai: edge-non-whsec-secret-is-utf8': {
    valid: true,
    why: 'as the library of OpenAI has it',
  },
  'meta-whatsapp: edge-raw-utf8-body-signed-over-escaped-form': {
    valid: true,
    why: 'Meta signs the escaped form; both prove the same JSON',
  },
}

describe('requests that were signed by others', () => {
  it.each(vectors)('$provider: $name', async (vector) => {
    const decision = decided[`${vector.provider}: ${vector.name}`]
    if (vector.edge === true) expect(decision).toBeDefined()
    const verified = await verify(entryOf(vector.provider), requestOf(vector))
    expect(verified.valid ? true : verified.code).toEqual(
      (decision?.valid ?? vector.valid) ? true : expect.any(String),
    )
    if (vector.dedupId !== undefined) {
      if (!verified.valid) throw new Error('not valid')
      expect(verified.delivery.id).toBe(vector.dedupId)
    }
    if (vector.expectResponse !== undefined && verified.valid) {
      expect(verified.answer?.status).toBe(vector.expectResponse.status)
    }
  })

  it.each(vectors.filter(({ expectResponse }) => expectResponse !== undefined))(
    '$provider: $name is answered by the receiver',
    async (vector) => {
      const { status, body, json } = vector.expectResponse ?? { status: 0 }
      const { now: _now, ...request } = requestOf(vector)
      const receiver = createReceiver({
        provider: entryOf(vector.provider),
        secret: request.secret ?? '',
        store: memoryStore(),
        handler: () => {
          throw new Error('a handshake reaches no handler')
        },
        ...(request.verifyToken === undefined ? {} : { verifyToken: request.verifyToken }),
      })
      const receipt = await receiver.receive(
        {
          method: vector.method,
          url: vector.url,
          headers: vector.headers,
          body: new TextEncoder().encode(vector.body),
        },
        undefined,
      )
      if (receipt.status === 'claimed') throw new Error('a handshake is no delivery')
      expect(receipt.answer.status).toBe(status)
      if (body !== undefined && vector.valid) expect(receipt.answer.body).toBe(body)
      if (json !== undefined) expect(JSON.parse(receipt.answer.body)).toEqual(json)
    },
  )
})
