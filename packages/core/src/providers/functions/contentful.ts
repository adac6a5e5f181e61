/** What Contentful signs: method, path, the headers that it lists, and the body. */
import { concatBytes, utf8 } from '../../crypto/bytes.ts'
import { pathOf } from '../content.ts'
import type { ContentCandidates, SignedRequest } from '../provider.ts'

const listHeader = 'x-contentful-signed-headers'
const timeHeader = 'x-contentful-timestamp'

export function contentfulContent({
  method,
  url,
  headers,
  body,
}: SignedRequest): ContentCandidates {
  const list = headers[listHeader] ?? ''
  const names = [...new Set([...list.split(','), listHeader, timeHeader])].sort()
  // Itself among them, sorted: another way to write the list is not what was signed.
  if (names.join(',') !== list || names.some((name) => headers[name] === undefined)) return []
  const lines = names.map((name) => `${name}:${(headers[name] ?? '').trim()}`).join(';')
  return [concatBytes([utf8(`${method}\n${signedPath(url)}\n${lines}\n`), body])]
}

// It escapes the whole query, and then path and query once more.
function signedPath(url: string): string {
  const [path = '', query = ''] = pathOf(url).split('?')
  return encodeURI(query === '' ? path : `${path}?${encodeURIComponent(query)}`)
}
