/** What Twilio signs: the address, and of a form its parameters. */
import { backend } from '#crypto'
import { toHex, utf8 } from '../../crypto/bytes.ts'
import { mediaType } from '../../headers.ts'
import { pathOf, sortedFields, sortedForm } from '../content.ts'
import { equalText, queryValue } from '../fields.ts'
import type { ContentCandidates, ReadableRequest, SignedRequest } from '../provider.ts'

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

/** Path and form as they are signed: another order, another writing of the same fields is the same request. */
export function twilioCovers({ url, payload }: ReadableRequest): string | undefined {
  // JSON is covered by its digest.
  if (typeof payload !== 'object' || payload === null || url.includes('bodySHA256='))
    return undefined
  const fields = Object.entries(payload).map(([name, value]): readonly [string, unknown[]] => [
    name,
    [value].flat(),
  ])
  if (fields.some(([, values]) => values.some((value) => typeof value !== 'string')))
    return undefined
  return (
    pathOf(url) +
    sortedFields(fields.flatMap(([name, values]) => values.map((value) => [name, String(value)])))
  )
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
