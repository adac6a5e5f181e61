/** What Twilio signs: the address, and of a form its parameters. */
import { backend } from '#crypto'
import { toHex, utf8 } from '../../crypto/bytes.ts'
import { mediaType } from '../../headers.ts'
import { sortedForm } from '../content.ts'
import { equalText, queryValue } from '../fields.ts'
import type { ContentCandidates, SignedRequest } from '../provider.ts'

/**
 * The address and the sorted form; of any other body the address alone, whose query then has to hold the body's digest.
 * A proxy may add or drop the port and encode the query anew, so each of these is a candidate.
 */
export async function twilioContent(request: SignedRequest): Promise<ContentCandidates> {
  const { url, body, headers } = request
  const isForm = mediaType(headers) === 'application/x-www-form-urlencoded'
  if (!isForm && body.length > 0) {
    const digest = toHex(await backend.digest('SHA-256', body))
    if (!equalText(queryValue(url, 'bodySHA256') ?? '', digest)) return []
  }
  const form = isForm ? sortedForm(body) : ''
  if (form === undefined) return []
  return addressesOf(url).map((address) => utf8(address + form))
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
