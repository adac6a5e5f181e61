/** Makes the token that a sender would send: for tests. */

import { importPKCS8, SignJWT } from 'jose'
import { backend } from '#crypto'
import { toBase64, toHex, utf8 } from '../crypto/bytes.ts'
import { optionError } from '../errors.ts'
import { signaturesOf } from '../providers/keys.ts'
import type { Provider } from '../providers/provider.ts'
import { heldBy } from './verify-jwt.ts'

/**
 * The header with a token for this request.
 * @throws WebhookInboxError `ERR_OPTION` when the entry signs otherwise, or the key is missing
 */
export async function jwtHeaders(
  provider: Provider,
  request: {
    readonly secret: string | undefined
    /** Of senders with a key pair: PKCS #8 in PEM. */
    readonly privateKey: string | undefined
    readonly kid?: string | undefined
    readonly deliveryId: string
    readonly url: string
    readonly body: Uint8Array
    readonly at: Date
  },
): Promise<Record<string, string>> {
  const signature = signaturesOf(provider).find(({ scheme }) => scheme === 'jwt')
  if (signature?.scheme !== 'jwt' || typeof signature.header !== 'string')
    throw optionError(`signRequest: ${provider.name} does not sign with a token.`)
  const [alg = 'HS256'] = signature.algorithms
  const held = heldBy(signature, request.secret)
  const issuer = held.issuer ?? [signature.issuer].flat()[0]
  const { bodyHash, urlHash } = signature
  const digest = await backend.digest('SHA-256', request.body)
  const seconds = Math.floor(request.at.getTime() / 1000)
  const claims = {
    iat: seconds,
    nbf: seconds,
    exp: seconds + 60,
    jti: request.deliveryId,
    ...(issuer === undefined ? {} : { iss: issuer }),
    ...(held.audience === undefined ? {} : { aud: held.audience }),
    ...(held.email === undefined ? {} : { email: held.email, email_verified: true }),
    ...(bodyHash === undefined
      ? {}
      : { [bodyHash.claim]: bodyHash.encoding === 'hex' ? toHex(digest) : toBase64(digest) }),
    ...(urlHash === undefined
      ? {}
      : { [urlHash]: toHex(await backend.digest('SHA-256', utf8(request.url))) }),
  }
  const { kid } = request
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg, typ: 'JWT', ...(kid === undefined ? {} : { kid }) })
    .sign(await signingKey(provider, alg, held.key, request.privateKey))
  return { [signature.header]: (signature.prefix ?? '') + token }
}

async function signingKey(
  provider: Provider,
  alg: string,
  secret: string | undefined,
  privateKey: string | undefined,
) {
  if (alg.startsWith('HS') && secret !== undefined) return utf8(secret)
  if (privateKey !== undefined) return importPKCS8(privateKey, alg)
  throw optionError(
    alg.startsWith('HS')
      ? `signRequest: "secret" is missing, and ${provider.name} signs with it.`
      : `signRequest: ${provider.name} signs with a key pair. Pass privateKey (PKCS #8 in PEM), and give the receiver the public one.`,
  )
}
