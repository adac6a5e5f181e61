/** What HubSpot signs by its third scheme: method, address, body and time. */
import { concatBytes, utf8 } from '../../crypto/bytes.ts'
import type { ContentCandidates, SignedRequest } from '../provider.ts'

// Its documentation wants them decoded, its library leaves them as they are.
const decoded = /%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi

/** The address as it came, and with its punctuation decoded: the same address in another writing. */
export async function hubspotContent({
  method,
  url,
  body,
  headers,
}: SignedRequest): Promise<ContentCandidates> {
  const time = headers['x-hubspot-request-timestamp']
  if (time === undefined) return []
  const addresses = new Set([url, url.replace(decoded, (code) => decodeURIComponent(code))])
  return [...addresses].map((address) => concatBytes([utf8(method + address), body, utf8(time)]))
}
