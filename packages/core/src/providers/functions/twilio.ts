/** What Twilio signs: the address, and of a form its parameters. */
import { backend } from '#crypto'
import { toHex, utf8 } from '../../crypto/bytes.ts'
import { pathOf, sortedFields, sortedForm } from '../content.ts'
import { equalText, queryValue } from '../fields.ts'
import type { BodyKind, ContentCandidates, ReadableRequest, SignedRequest } from '../provider.ts'

// In the address, which is signed. The content type is not.
const bodyDigest = 'bodySHA256'

/** What stands in the address tells: a digest of the body, or its form is signed. */
export function twilioBodyIs({ url }: SignedRequest): BodyKind | undefined {
  return queryValue(url, bodyDigest) === undefined ? 'form' : undefined
}

/**
 * The address and the sorted form; the address alone where it holds the digest of the body. A proxy may add or drop the
 * port and encode the query anew, so each of these is a candidate.
 */
export async function twilioContent({ url, body }: SignedRequest): Promise<ContentCandidates> {
  const given = queryValue(url, bodyDigest)
  if (given !== undefined && !equalText(given, toHex(await backend.digest('SHA-256', body))))
    return []
  const form = given === undefined ? sortedForm(body) : ''
  if (form === undefined) return []
  return addressesOf(url).map((address) => utf8(address + form))
}

/** Path and form as they are signed: another order, another writing of the same address and fields is the same request. */
export function twilioCovers({ url, payload }: ReadableRequest): string | undefined {
  const path = encodedAgain(pathOf(url))
  // The address holds the digest of all else.
  if (queryValue(url, bodyDigest) !== undefined) return path
  if (typeof payload !== 'object' || payload === null) return undefined
  const fields = Object.entries(payload).flatMap(([name, value]) =>
    [value].flat().map((one): readonly [string, string] => [name, String(one)]),
  )
  return path + sortedFields(fields)
}

function addressesOf(url: string): readonly string[] {
  const parts = /^(https?):\/\/((?:[^/?#@]*@)?)([^/?#:]+|\[[^\]]*\])(:\d+)?(.*)$/is.exec(url)
  if (parts === null) return [url]
  const [, scheme = '', user = '', host = '', port = '', rest = ''] = parts
  const usualPort = port === '' ? (scheme.toLowerCase() === 'https' ? ':443' : ':80') : port
  const plain = [rest, encodedAgain(rest)]
  const addresses = plain.flatMap((path) =>
    ['', usualPort].map((given) => `${scheme}://${user}${host}${given}${path}`),
  )
  return [...new Set([url, ...addresses])]
}

// Some back ends sign the query as a form library writes it.
function encodedAgain(rest: string): string {
  const at = rest.indexOf('?')
  if (at === -1) return rest
  const pairs = [...new URLSearchParams(rest.slice(at + 1))]
  const query = pairs
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
    .join('&')
  return `${rest.slice(0, at)}?${query.replaceAll("'", '%27')}`
}
