/** What a sender signs: from the template of an entry to bytes. */
import { backend } from '#crypto'
import { concatBytes, toHex, utf8 } from '../crypto/bytes.ts'
import { crc32 } from '../crypto/crc32.ts'
import type { BodyKind, Content, ContentCandidates, Signature, SignedRequest } from './provider.ts'

/** What a template is filled with, beside the request. */
export interface ContentValues {
  /** As it was sent. */
  readonly timestamp: string | undefined
  readonly secret: Uint8Array
}

const placeholder =
  /\{(body|timestamp|header:[a-z0-9-]+|method|url|path|secret|sha256|sha256:hex|crc32|form)\}/

type Part = { readonly literal: Uint8Array } | { readonly name: string }

/** The names that a template uses; throws for one that there is not. */
export function placeholdersOf(template: string): readonly string[] {
  return partsOf(template).flatMap((part) => ('name' in part ? [part.name] : []))
}

/** What a scheme proves the body of a request to be; undefined where its bytes are signed as they are. */
export function bodyKindOf(signature: Signature, request: SignedRequest): BodyKind | undefined {
  const { bodyIs } = signature
  if (bodyIs !== undefined) return typeof bodyIs === 'function' ? bodyIs(request) : bodyIs
  if (!('content' in signature) || typeof signature.content !== 'string') return undefined
  const names = placeholdersOf(signature.content)
  if (names.includes('form')) return 'form'
  const at = names.indexOf('body')
  const isMovable = [names[at - 1], names[at + 1]].some((name = '') =>
    /^(url|path|header:.+)$/.test(name),
  )
  // A plain hash can be lengthened without the secret, by bytes that are no JSON.
  return at !== -1 && (isMovable || signature.scheme === 'digest') ? 'json' : undefined
}

const parsed = new Map<string, readonly Part[]>()

function partsOf(template: string): readonly Part[] {
  const known = parsed.get(template)
  if (known !== undefined) return known
  const parts = template.split(placeholder).flatMap((text, index): readonly Part[] => {
    if (index % 2 === 1) return [{ name: text }]
    if (/\{[a-z0-9:-]*\}/.test(text)) throw new TypeError(`unknown placeholder in "${text}"`)
    return text === '' ? [] : [{ literal: utf8(text) }]
  })
  parsed.set(template, parts)
  return parts
}

/** The bytes that may have been signed; empty when the request lacks something that is part of them. */
export async function contentOf(
  content: Content,
  request: SignedRequest,
  values: ContentValues,
): Promise<ContentCandidates> {
  if (typeof content === 'function') {
    const candidates: unknown = await content(request)
    if (Array.isArray(candidates)) return candidates
    throw new TypeError(
      'The "content" function of a provider entry must give a list of Uint8Array.',
    )
  }
  const bytes: Uint8Array[] = []
  for (const part of partsOf(content)) {
    const value = 'literal' in part ? part.literal : await fillIn(part.name, request, values)
    if (value === undefined) return []
    bytes.push(typeof value === 'string' ? utf8(value) : value)
  }
  return [concatBytes(bytes)]
}

async function fillIn(
  name: string,
  request: SignedRequest,
  { timestamp, secret }: ContentValues,
): Promise<string | Uint8Array | undefined> {
  const { body, headers, method, url } = request
  switch (name) {
    case 'body':
      return body
    case 'timestamp':
      return timestamp
    case 'method':
      return method
    case 'url':
      return url
    case 'path':
      return pathOf(url)
    case 'secret':
      return secret
    case 'sha256':
      return backend.digest('SHA-256', body)
    case 'sha256:hex':
      return toHex(await backend.digest('SHA-256', body))
    case 'crc32':
      return String(crc32(body))
    case 'form':
      return sortedForm(body)
    default:
      return headers[name.slice('header:'.length)]
  }
}

/** Path and query of an address, as written. */
export function pathOf(url: string): string {
  const path = url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').split('#', 1)[0] ?? ''
  return path.startsWith('/') ? path : `/${path}`
}

/**
 * Names and values of a form, one after another: sorted by name, the values of one name sorted, each once. Undefined
 * for a field without `=`: nothing stands between name and value here, so one field could be taken for two.
 */
export function sortedForm(body: Uint8Array): string | undefined {
  // A byte order mark is part of the first name, as for those who sign.
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(body)
  if (text !== '' && text.split('&').some((field) => !field.includes('='))) return undefined
  return sortedFields(new URLSearchParams(text))
}

/** {@link sortedForm} of fields that are decoded. */
export function sortedFields(fields: Iterable<readonly [name: string, value: string]>): string {
  const byName = new Map<string, Set<string>>()
  for (const [name, value] of fields) {
    const values = byName.get(name) ?? new Set()
    byName.set(name, values.add(value))
  }
  return [...byName]
    .sort(([a], [b]) => compare(a, b))
    .flatMap(([name, values]) => [...values].sort(compare).map((value) => name + value))
    .join('')
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
