/** Signed requests of others, and how they are handed to this library: without anything of Node, for every runtime. */
import { getProvider, type Provider, type VerifyRequest } from '@webhook-inbox/core'
import * as jwtProviders from '@webhook-inbox/core/jwt'

/** A request as a provider's own library signs it, and what that library says of it. */
export interface Vector {
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

const jwtByName = new Map(
  Object.values(jwtProviders).flatMap((entry): readonly [string, Provider][] =>
    'name' in entry && 'signature' in entry ? [[entry.name, entry]] : [],
  ),
)

export function entryOf(name: string): Provider {
  const entry = getProvider(name) ?? jwtByName.get(name)
  if (entry === undefined) throw new Error(`no entry "${name}"`)
  return entry
}

export function requestOf(vector: Vector): VerifyRequest {
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
