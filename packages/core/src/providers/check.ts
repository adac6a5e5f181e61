import { optionError } from '../errors.ts'
import type { Provider } from './provider.ts'

/**
 * Refuses what is no provider entry, and names the field: found at the first request, it would be a 401 or a crash.
 * @throws WebhookInboxError `ERR_OPTION`
 */
export function checkEntry(entry: unknown): asserts entry is Provider {
  if (!isObject(entry))
    throw optionError('"provider" must be a name from the catalogue or a provider entry.')
  for (const [field, isRight, rule] of rules) {
    if (isRight(at(entry, field))) continue
    throw optionError(
      `The provider entry ${JSON.stringify(at(entry, 'name')) ?? ''}: "${field}" must be ${rule}.`,
    )
  }
}

type Rule = readonly [field: string, isRight: (value: unknown) => boolean, rule: string]

const lowerCaseHeader = 'a header name in lower case'
const source = `{ header: 'x-name' } with ${lowerCaseHeader}, or { body: 'name' }`

const rules: readonly Rule[] = [
  [
    'name',
    (value) => matches(value, /^[a-z0-9][a-z0-9._-]{0,63}$/),
    "a lower-case name, for instance 'acme'",
  ],
  ['signature.scheme', (value) => value === 'hmac', `'hmac'`],
  ['signature.hash', oneOf('SHA-1', 'SHA-256', 'SHA-512'), `'SHA-1', 'SHA-256' or 'SHA-512'`],
  ['signature.header', isHeaderName, lowerCaseHeader],
  ['signature.prefix', isText, "a text, '' when there is none"],
  ['signature.encoding', oneOf('hex'), `'hex'`],
  ['signature.content', oneOf('body'), `'body'`],
  ['signature.secretEncoding', oneOf('utf8'), `'utf8'`],
  ['deliveryId', isSource, source],
  ['event', isSource, source],
  ['action', optional(isSource), source],
  [
    'endpoint',
    optional(isEndpoint),
    `{ header: ${lowerCaseHeader}, pattern: a RegExp without the flags g and y }`,
  ],
  ['formField', optional(isText), 'the name of a form field'],
  [
    'pingEvents',
    (value) => Array.isArray(value) && value.every(isText),
    'a list of event names, [] when there are none',
  ],
  ['maxBodyBytes', isCount, 'a positive whole number of bytes'],
  [
    'ackDeadlineMs',
    (value) => isCount(value) && value <= 2_147_483_647,
    'a positive whole number of milliseconds',
  ],
  ['retriesByItself', (value) => typeof value === 'boolean', 'true or false'],
  ['retentionMs', isCount, 'a positive whole number of milliseconds'],
]

function at(entry: object, field: string): unknown {
  let value: unknown = entry
  for (const name of field.split('.'))
    value = isObject(value) ? Reflect.get(value, name) : undefined
  return value
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
}

function matches(value: unknown, pattern: RegExp): boolean {
  return typeof value === 'string' && pattern.test(value)
}

function isHeaderName(value: unknown): boolean {
  return matches(value, /^[a-z0-9!#$%&'*+.^_`|~-]+$/)
}

function isSource(value: unknown): boolean {
  if (!isObject(value)) return false
  return isHeaderName(Reflect.get(value, 'header')) || matches(Reflect.get(value, 'body'), /./)
}

function isEndpoint(value: unknown): boolean {
  if (!isObject(value)) return false
  const pattern: unknown = Reflect.get(value, 'pattern')
  // A pattern with a memory gives another answer to every second request.
  const isStable = pattern instanceof RegExp && !pattern.global && !pattern.sticky
  return isStable && isHeaderName(Reflect.get(value, 'header'))
}

function oneOf(...words: readonly string[]): (value: unknown) => boolean {
  return (value) => typeof value === 'string' && words.includes(value)
}

function optional(isRight: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || isRight(value)
}
