/** Reads what an entry points to out of a request. */
import { equalBytes, utf8 } from '../crypto/bytes.ts'
import type { HeaderMap } from '../delivery.ts'
import type { Condition, FieldSource, TextSource } from './provider.ts'

/** What the sources of an entry are read from. */
export interface Readable {
  readonly headers: HeaderMap
  readonly url: string
  /** Undefined before the body is verified and decoded. */
  readonly payload: unknown
  /** `sha256:` and hex, where the body was hashed. */
  readonly bodyDigest?: string
}

/** The text of a field; undefined when it is absent, empty or no text. Numbers and booleans count as their text. */
export function readField(source: FieldSource, from: Readable): string | undefined {
  if ('header' in source) {
    const { header, listedIn } = source
    const isMeant =
      listedIn === undefined || from.headers[listedIn]?.split(',').includes(header) === true
    return (isMeant ? from.headers[header]?.trim() : undefined) || undefined
  }
  if ('query' in source) return queryValue(from.url, source.query)
  return textOf(readPath(from.payload, source.body), from)
}

function textOf(value: unknown, { bodyDigest }: Readable): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value
  // Too large to be exact, it would be the same text for two ids: the bytes still differ.
  if (Number.isInteger(value) && !Number.isSafeInteger(value)) return bodyDigest
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

/** The text that a source says. */
export function readText(source: TextSource, from: Readable): string | undefined {
  // One that was written without types may give a number.
  if (typeof source === 'function') return textOf(source(from), from)
  if ('value' in source) return source.value
  if ('digest' in source) return from.bodyDigest
  if ('anyOf' in source) {
    for (const one of source.anyOf) {
      const text = readText(one, from)
      if (text !== undefined && text !== '') return text
    }
    return undefined
  }
  if ('join' in source) {
    const parts = source.join.map((part) => readText(part, from))
    return parts.some((part) => part === undefined)
      ? undefined
      : parts.join(source.separator ?? ':')
  }
  return readField(source, from)
}

/** The value at a path of own names joined by dots; the whole for ''. */
export function readPath(value: unknown, path: string): unknown {
  if (path === '') return value
  let current = value
  for (const name of path.split('.')) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, name))
      return undefined
    current = Reflect.get(current, name)
  }
  return current
}

/** One decoded value of the query. */
export function queryValue(url: string, name: string): string | undefined {
  const at = url.indexOf('?')
  if (at === -1) return undefined
  return new URLSearchParams(url.slice(at + 1).split('#', 1)[0]).get(name) ?? undefined
}

/** Whether all conditions hold. */
export function holds(conditions: readonly Condition[], from: Readable): boolean {
  return conditions.every((condition) => {
    if (condition.absent === true) return isAbsent(condition, from)
    const text = readField(condition, from)
    if (condition.includes !== undefined) return text?.includes(condition.includes) === true
    if (condition.equals === undefined)
      return text !== undefined || isPresentButEmpty(condition, from)
    return text === String(condition.equals)
  })
}

function isAbsent(source: FieldSource, from: Readable): boolean {
  if ('body' in source) return readPath(from.payload, source.body) === undefined
  return readField(source, from) === undefined
}

// A challenge may be an object or an empty text: it is there all the same.
function isPresentButEmpty(source: FieldSource, from: Readable): boolean {
  return 'body' in source && readPath(from.payload, source.body) !== undefined
}

/** Compares texts in a time that depends on their lengths only. */
export function equalText(a: string, b: string): boolean {
  return equalBytes(utf8(a), utf8(b))
}

/** The headers that a source reads. */
export function headersOf(source: TextSource | FieldSource | undefined): readonly string[] {
  if (source === undefined || typeof source === 'function') return []
  if ('header' in source) return [source.header]
  if ('anyOf' in source) return source.anyOf.flatMap(headersOf)
  return 'join' in source ? source.join.flatMap(headersOf) : []
}
