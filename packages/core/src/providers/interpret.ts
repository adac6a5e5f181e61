/** The whole way from a request to what it says: signature, then body, then time, id and event. */
import { backend } from '#crypto'
import { toHex } from '../crypto/bytes.ts'
import { bodyKindOf } from './content.ts'
import { decodeBody } from './decode.ts'
import type { HandshakeResult } from './handshake.ts'
import { answerHandshake } from './handshake.ts'
import type { SecretKey } from './keys.ts'
import { coveredDigest, type ParseCode, type ParsedRequest, parseRequest } from './parse.ts'
import type { BodyKind, Provider, SignedRequest, VerifyCode } from './provider.ts'
import { type VerifySettings, verifySignature } from './signature.ts'
import { bodyTime, checkTimestamp } from './timestamp.ts'

export interface InterpretSettings extends VerifySettings {
  readonly verifyToken?: string | undefined
}

/** A request that is the provider's. */
export type Interpretation =
  | { readonly status: 'refused'; readonly code: VerifyCode | ParseCode }
  | {
      readonly status: 'handshake'
      readonly result: HandshakeResult
      readonly payload: unknown
    }
  | {
      readonly status: 'parsed'
      readonly parsed: ParsedRequest
      readonly secretIndex: number
      /** Hex SHA-256 of the raw body. */
      readonly digest: string
      /** Hex SHA-256 of what the signature covers. */
      readonly covered: string
      /** What the signature proves the body to be. */
      readonly bodyIs: BodyKind | undefined
    }

export async function interpret(
  provider: Provider,
  secrets: readonly SecretKey[],
  request: SignedRequest,
  settings: InterpretSettings,
): Promise<Interpretation> {
  const proof = await verifySignature(provider, secrets, request, settings)
  if (typeof proof === 'string') return { status: 'refused', code: proof }
  const { headers, url, body, nowMs } = request
  const { secretIndex, signature } = proof
  const bodyIs = bodyKindOf(signature, request)
  const decoded = decodeBody(provider, body, bodyIs)
  if (bodyIs !== undefined && !decoded.readable)
    return { status: 'refused', code: 'signature_mismatch' }
  const timestamp = 'timestamp' in signature ? signature.timestamp : undefined
  if (timestamp?.body !== undefined) {
    const time = bodyTime(timestamp.body, { headers, url, payload: decoded.payload })
    const code = checkTimestamp(timestamp, time, { nowMs, toleranceMs: settings.toleranceMs })
    if (code !== undefined) return { status: 'refused', code }
  }
  const result = await answerHandshake(
    provider,
    { ...request, payload: decoded.payload },
    { isSigned: true, verifyToken: settings.verifyToken, secret: secrets[secretIndex]?.text },
  )
  if (result !== undefined) return { status: 'handshake', result, payload: decoded.payload }
  const digest = toHex(await backend.digest('SHA-256', body))
  const deliveryId = signature.deliveryId ?? provider.deliveryId
  const from = { headers, url, payload: decoded.payload }
  const covered = provider.covers === undefined ? digest : await coveredDigest(provider, from, body)
  const input = { headers, url, decoded, digest: covered }
  const parsed = await parseRequest({ ...provider, deliveryId }, input)
  if (typeof parsed === 'string') return { status: 'refused', code: parsed }
  return { status: 'parsed', parsed, secretIndex, digest, covered, bodyIs }
}
