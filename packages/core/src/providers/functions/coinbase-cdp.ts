/** What Coinbase's developer platform signs: time, the names of headers, their values, and the body. */
import { concatBytes, utf8 } from '../../crypto/bytes.ts'
import type { ContentCandidates, SignedRequest } from '../provider.ts'
import { splitValues } from '../split.ts'

export function coinbaseCdpContent({ headers, body }: SignedRequest): ContentCandidates {
  const header = headers['x-hook0-signature'] ?? ''
  const [time] = splitValues(header, { separator: ',', prefix: 't=' })
  const [names] = splitValues(header, { separator: ',', prefix: 'h=' })
  if (time === undefined || names === undefined) return []
  // A full stop in a name would move the end of the names.
  if (!/^[a-z0-9-]+( [a-z0-9-]+)*$/i.test(names)) return []
  const values = names.split(' ').map((name) => headers[name.toLowerCase()])
  if (values.some((value) => value === undefined)) return []
  return [concatBytes([utf8(`${time}.${names}.${values.join('.')}.`), body])]
}
