import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createReceiver,
  getProvider,
  memoryStore,
  type Provider,
  type VerifyRequest,
  verify,
} from '@webhook-inbox/core'
import * as jwtProviders from '@webhook-inbox/core/jwt'
import { describe, expect, it } from 'vitest'

/** A request as a provider's own library signs it, and what that library says of it. */
interface Vector {
  readonly provider: string
  readonly name: string
  readonly scheme: string
  readonly secret?: string
  readonly secondarySecret?: string
  readonly publicKey?: string
  readonly certPem?: string
  readonly jwk?: Readonly<Record<string, unknown>>
  readonly certs?: Readonly<Record<string, string>>
  readonly audience?: string
  readonly apiKey?: string
  readonly verifyToken?: string
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly valid: boolean
  readonly now: number
  readonly edge?: boolean
  readonly dedupId?: string
  readonly expectResponse?: {
    readonly status: number
    readonly body?: string
    readonly json?: unknown
  }
}

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

const jwtByName = new Map(
  Object.values(jwtProviders).flatMap((entry): readonly [string, Provider][] =>
    'name' in entry && 'signature' in entry ? [[entry.name, entry]] : [],
  ),
)

function entryOf(name: string): Provider {
  const entry = getProvider(name) ?? jwtByName.get(name)
  if (entry === undefined) throw new Error(`no entry "${name}"`)
  return entry
}

function requestOf(vector: Vector): VerifyRequest {
  const { secret, secondarySecret, publicKey, certPem, jwk, certs, audience, apiKey } = vector
  const found =
    publicKey ?? certPem ?? audience ?? (jwk === undefined ? secret : JSON.stringify(jwk)) ?? ''
  return {
    method: vector.method,
    url: vector.url,
    headers: vector.headers,
    body: new TextEncoder().encode(vector.body),
    now: new Date(vector.now * 1000),
    secret:
      apiKey !== undefined
        ? `${apiKey}:${found}`
        : secondarySecret !== undefined
          ? [found, secondarySecret]
          : found,
    ...(vector.verifyToken === undefined ? {} : { verifyToken: vector.verifyToken }),
    ...(certs === undefined ? {} : { keys: ({ kid = '' }) => certs[kid] }),
  }
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
