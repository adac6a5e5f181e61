import type { HeaderMap } from './delivery.ts'
import { optionError } from './errors.ts'

/** Headers as any framework has them: a `Headers`, or Node's object of strings and lists. */
export type HeadersInput =
  | { forEach(callback: (value: string, name: string) => void): void }
  | Readonly<Record<string, string | readonly string[] | undefined>>

/**
 * One form for all: lower-case names, repeated values joined by `, `, no prototype (so that a header named
 * `__proto__` is only a header).
 * @throws WebhookInboxError `ERR_OPTION` for what is neither
 */
export function toHeaderMap(input: HeadersInput): HeaderMap {
  if (typeof input !== 'object' || input === null || Array.isArray(input))
    throw optionError('"headers" must be a Headers, or an object of names and values.')
  const map: Record<string, string | undefined> = Object.create(null)
  const add = (value: unknown, name: string): void => {
    const text = Array.isArray(value) ? value.join(', ') : value
    if (typeof text !== 'string') return
    const key = String(name).toLowerCase()
    const before = map[key]
    map[key] = before === undefined ? text : `${before}, ${text}`
  }
  if (hasForEach(input)) input.forEach(add)
  else for (const name of Object.keys(input)) add(input[name], name)
  return map
}

function hasForEach(
  input: HeadersInput,
): input is { forEach(callback: (value: string, name: string) => void): void } {
  return 'forEach' in input && typeof input.forEach === 'function'
}
