import type { HeaderMap } from './delivery.ts'
import { optionError, WebhookInboxError } from './errors.ts'
import {
  importSecret,
  type SecretKey,
  scopeProblem,
  secretProblem,
  signaturesOf,
} from './providers/keys.ts'
import type { Provider } from './providers/provider.ts'
import { isKeyless, withoutSecret } from './providers/signature.ts'

/** What a secret function sees. The signature is not verified yet: trust none of it but to pick a secret. */
export interface SecretRequest {
  readonly method: string
  /** As the framework shows it; may be a path only. */
  readonly url: string
  readonly headers: HeaderMap
}

type OneOrMore = string | readonly string[]

/**
 * One secret, several (while rotating: any may match), or a function that picks them for a request. A function
 * that returns undefined or an empty list knows no secret for the request, which is then refused with 401. One that
 * throws, or takes longer than the sender waits for an answer (GitHub: 10 s), is a 503.
 */
export type Secret =
  | OneOrMore
  | ((request: SecretRequest) => OneOrMore | undefined | Promise<OneOrMore | undefined>)

/** Secrets ready for use, in the order given. */
export type SecretKeys = readonly SecretKey[]

export type SecretLookup = (request: SecretRequest) => Promise<SecretKeys>

/**
 * Checks the option once and prepares the keys.
 * @param scoped whether a secret has to say whose account it is for, where the entry wants that
 * @throws WebhookInboxError `ERR_OPTION` for a missing, blank or wrong secret
 */
export function secretLookup(
  where: string,
  provider: Provider,
  secret: unknown,
  { scoped }: { readonly scoped: boolean },
): SecretLookup {
  const problemOfOne = (one: string): string | undefined =>
    secretProblem(provider, one) ?? (scoped ? scopeProblem(provider, one) : undefined)
  if (typeof secret === 'function') {
    return async (request) => {
      let found: unknown
      try {
        found = await secret(request)
      } catch (error) {
        throw new WebhookInboxError(
          'ERR_SECRET_UNAVAILABLE',
          `${where}: the "secret" function threw.`,
          { cause: error },
        )
      }
      // null as well: what a database client gives for no row.
      if (found === undefined || found === null) return []
      const problem = problemOf(problemOfOne, found, true)
      if (problem !== undefined) {
        throw new WebhookInboxError(
          'ERR_SECRET_UNAVAILABLE',
          `${where}: the "secret" function returned a value that is ${problem}.`,
        )
      }
      return importAll(where, provider, found)
    }
  }
  if (secret === undefined && signaturesOf(provider).some(isKeyless))
    return async () => withoutSecret
  const problem = problemOf(problemOfOne, secret, false)
  if (problem !== undefined) {
    throw optionError(
      `${where}: "secret" is ${problem}. Pass ${provider.secretIs ?? "the webhook's secret"}, for instance secret: process.env.WEBHOOK_SECRET (is it set?), a list of them while rotating, or a function that returns them.`,
    )
  }
  const fixed: unknown = Array.isArray(secret) ? [...secret] : secret
  let keys: Promise<SecretKeys> | undefined
  return () => {
    keys ??= importAll(where, provider, fixed)
    return keys
  }
}

async function importAll(where: string, provider: Provider, secret: unknown): Promise<SecretKeys> {
  const list: readonly unknown[] = Array.isArray(secret) ? secret : [secret]
  try {
    return await Promise.all(
      list.filter((one) => typeof one === 'string').map((one) => importSecret(provider, one)),
    )
  } catch (error) {
    throw new WebhookInboxError(
      'ERR_SECRET_UNAVAILABLE',
      `${where}: "secret" cannot be used as a key. Pass ${provider.secretIs ?? "the webhook's secret"}.`,
      { cause: error },
    )
  }
}

// An empty string is a valid HMAC key, so a blank secret would accept anybody's signature.
function problemOf(
  problemOfOne: (secret: string) => string | undefined,
  secret: unknown,
  allowEmptyList: boolean,
): string | undefined {
  if (secret === undefined || secret === null) return 'missing'
  if (typeof secret === 'string') return secret.trim() === '' ? 'blank' : problemOfOne(secret)
  if (!Array.isArray(secret)) return `of the wrong kind (${typeof secret})`
  if (secret.length === 0) return allowEmptyList ? undefined : 'an empty list'
  for (const one of secret) {
    if (typeof one !== 'string' || one.trim() === '') return 'a list with a blank or wrong entry'
    const problem = problemOfOne(one)
    if (problem !== undefined) return `a list with an entry that is ${problem}`
  }
  return undefined
}
