import { optionError } from '../errors.ts'
import { placeholdersOf } from './content.ts'
import type { Provider } from './provider.ts'

const checked = new WeakSet<object>()

/**
 * The entry, when it is one.
 * @throws WebhookInboxError `ERR_OPTION` for what is no entry, with the field
 */
export function entryOf(entry: unknown): Provider {
  checkEntry(entry)
  return entry
}

/**
 * Refuses what is no provider entry, and names the field: found at the first request, it would be a 401 or a crash.
 * @throws WebhookInboxError `ERR_OPTION`
 */
export function checkEntry(entry: unknown): asserts entry is Provider {
  if (!isObject(entry)) {
    throw optionError(
      typeof entry === 'string'
        ? `"provider" must be an entry here, and "${entry}" is a name: import { ${camel(entry)} } from '@webhook-inbox/core/providers'.`
        : '"provider" must be a name from the catalogue or a provider entry.',
    )
  }
  if (checked.has(entry)) return
  checkRules(entry, '', entryRules, entry)
  const {
    signature,
    handshakes,
    items,
  }: { signature?: unknown; handshakes?: unknown; items?: unknown } = entry
  const list: readonly unknown[] = Array.isArray(signature) ? signature : [signature]
  if (list.length === 0) fail(entry, 'signature', 'a scheme, or a list of at least one')
  for (const [index, one] of list.entries()) {
    const path = Array.isArray(signature) ? `signature.${index}.` : 'signature.'
    if (!isObject(one)) fail(entry, path.slice(0, -1), 'a scheme')
    checkRules(one, path, schemeRules, entry)
    const own = rulesOfScheme[String(Reflect.get(one, 'scheme'))]
    if (own === undefined) fail(entry, `${path}scheme`, schemeNames)
    checkRules(one, path, own, entry)
  }
  for (const [index, one] of (Array.isArray(handshakes) ? handshakes : []).entries()) {
    if (!isObject(one)) fail(entry, `handshakes.${index}`, 'an object')
    checkRules(one, `handshakes.${index}.`, handshakeRules, entry)
  }
  if (isObject(items) && typeof items !== 'function') checkRules(items, 'items.', itemRules, entry)
  checked.add(entry)
}

/** A name as the module of entries exports it. */
export function camel(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9]+(.)?/g, (_, letter: string | undefined) =>
    (letter ?? '').toUpperCase(),
  )
}

type Rule = readonly [field: string, isRight: (value: unknown) => boolean, rule: string]

function checkRules(object: object, path: string, rules: readonly Rule[], entry: object): void {
  for (const [field, isRight, rule] of rules) {
    if (!isRight(at(object, field))) fail(entry, path + field, rule)
  }
  const known = new Set(rules.map(([field]) => field.split('.')[0]))
  if (path !== '') return
  for (const name of Object.keys(object)) {
    if (known.has(name)) continue
    fail(entry, name, 'left out: an entry has no such field')
  }
}

function fail(entry: object, field: string, rule: string): never {
  throw optionError(
    `The provider entry ${JSON.stringify(at(entry, 'name')) ?? ''}: "${field}" must be ${rule}.`,
  )
}

const lowerCaseHeader = 'a header name in lower case'
const source = `{ header: 'x-name' } with ${lowerCaseHeader}, { body: 'path.in.body' }, { query: 'name' }, { value }, { anyOf: [] }, { join: [] }, { digest: 'body' } or a function`
const field = `{ header: 'x-name' } with ${lowerCaseHeader}, { body: 'path.in.body' } or { query: 'name' }`
const schemeNames = "'hmac', 'digest', 'ed25519', 'ecdsa-p256', 'rsa', 'token', 'jwt' or 'function'"

const entryRules: readonly Rule[] = [
  [
    'name',
    (value) => matches(value, /^[a-z0-9][a-z0-9._-]{0,63}$/),
    "a lower-case name, for instance 'acme'",
  ],
  ['title', optional(isText), 'a text'],
  ['signature', isObject, 'a scheme, or a list of schemes'],
  ['deliveryId', isIdSource, `${source}, or { dedup: 'none' }`],
  ['event', isSource, source],
  ['action', optional(isSource), source],
  [
    'endpoint',
    optional(isEndpoint),
    `{ header: ${lowerCaseHeader}, pattern: a RegExp without the flags g and y }`,
  ],
  ['formField', optional(isText), 'the name of a form field'],
  ['formFields', optional(isBoolean), 'true or false'],
  ['jsonLines', optional(isBoolean), 'true or false'],
  ['items', optional(isObject), 'an object or a function'],
  ['handshakes', optional(Array.isArray), 'a list'],
  ['pingEvents', optional(isTextList), 'a list of event names, or left out when there are none'],
  ['maxBodyBytes', optional(isCount), 'a positive whole number of bytes'],
  [
    'ackDeadlineMs',
    optional((value) => isCount(value) && value <= 2_147_483_647),
    'a positive whole number of milliseconds',
  ],
  ['retriesByItself', isBoolean, 'true or false'],
  ['retentionMs', isCount, 'a positive whole number of milliseconds'],
  ['retryNumber', optional(isField), field],
  ['retryReason', optional(isField), field],
  ['success', optional(isSuccess), '{ status: 200 to 299, body?, contentType?, when? }'],
  [
    'stopStatuses',
    optional((value) => Array.isArray(value) && value.every(isCount)),
    'a list of statuses',
  ],
  [
    'stopHeader',
    optional(
      (value) =>
        Array.isArray(value) && value.length === 2 && isHeaderName(value[0]) && isText(value[1]),
    ),
    `[${lowerCaseHeader}, its value]`,
  ],
  ['secretIs', optional(isText), 'a text'],
  ['sources', optional(Array.isArray), 'a list of { url, readAt }'],
  ['unconfirmed', optional(isTextList), 'a list of texts'],
]

const schemeRules: readonly Rule[] = [
  ['scheme', isText, schemeNames],
  [
    'header',
    optional(
      (value) =>
        isHeaderName(value) ||
        (Array.isArray(value) && value.length > 0 && value.every(isHeaderName)),
    ),
    `${lowerCaseHeader}, or a list of them`,
  ],
  ['query', optional(isText), 'the name of a query parameter'],
  ['separator', optional((value) => matches(value, /./)), 'a text that is not empty'],
  ['prefix', optional(isText), 'a text, or left out when there is none'],
  ['bare', optional(isBoolean), 'true or false'],
  ['groups', optional((value) => matches(value, /./)), 'a text that is not empty'],
  ['when', optional(Array.isArray), 'a list of conditions'],
  ['deliveryId', optional(isSource), source],
]

const encodings = ['hex', 'base64', 'base64url'] as const
const isHash = oneOf('SHA-1', 'SHA-256', 'SHA-512')
const secretRules: readonly Rule[] = [
  ['secret.encoding', optional(oneOf('utf8', 'hex', 'base64')), "'utf8', 'hex' or 'base64'"],
  ['secret.prefix', optional(isText), 'a text'],
  ['secret.withoutPrefix', optional(oneOf('same', 'utf8', 'refuse')), "'same', 'utf8' or 'refuse'"],
  [
    'secret.pattern',
    optional((value) => value instanceof RegExp && !value.global && !value.sticky),
    "a regular expression without the flags 'g' and 'y'",
  ],
  ['secret.derive', optional(isHash), "'SHA-1', 'SHA-256' or 'SHA-512'"],
]
const contentRules: readonly Rule[] = [
  [
    'content',
    isContent,
    "a template such as '{timestamp}.{body}' with known placeholders, or a function",
  ],
  ['signsUrl', optional(isBoolean), 'true or false'],
  [
    'timestamp.unit',
    optional(oneOf('s', 'ms', 'iso', 'http-date')),
    "'s', 'ms', 'iso' or 'http-date'",
  ],
  ['timestamp.header', optional(isHeaderName), lowerCaseHeader],
  ['timestamp.body', optional(isText), 'a path in the body'],
  ['timestamp.pastMs', optional(isCount), 'a positive whole number of milliseconds'],
  [
    'timestamp.futureMs',
    optional((value) => value === 0 || isCount(value)),
    'a whole number of milliseconds',
  ],
  ...secretRules,
]
const isCarried: Rule = [
  '',
  (value) => at(value, 'header') !== undefined || at(value, 'query') !== undefined,
  'with a "header" or a "query" that holds the signature',
]
const isFunction = (value: unknown): boolean => typeof value === 'function'

const rulesOfScheme: Readonly<Record<string, readonly Rule[]>> = {
  hmac: [
    isCarried,
    ['hash', isHash, "'SHA-1', 'SHA-256' or 'SHA-512'"],
    ['encoding', oneOf(...encodings), "'hex', 'base64' or 'base64url'"],
    ['anyCase', optional(isBoolean), 'true or false'],
    ...contentRules,
  ],
  digest: [
    isCarried,
    ['hash', isHash, "'SHA-1', 'SHA-256' or 'SHA-512'"],
    ['encoding', oneOf('hex', 'base64'), "'hex' or 'base64'"],
    ...contentRules,
    [
      'content',
      (value) =>
        typeof value === 'function' || (typeof value === 'string' && value.includes('{secret}')),
      "a template with '{secret}': without it anybody can make the hash",
    ],
  ],
  ed25519: [isCarried, ['encoding', oneOf('hex', 'base64'), "'hex' or 'base64'"], ...contentRules],
  'ecdsa-p256': [
    isCarried,
    ['encoding', oneOf('hex', 'base64'), "'hex' or 'base64'"],
    ...contentRules,
  ],
  rsa: [
    isCarried,
    ['hash', optional(oneOf('SHA-1', 'SHA-256')), "'SHA-1' or 'SHA-256'"],
    ['encoding', oneOf('hex', 'base64'), "'hex' or 'base64'"],
    ...contentRules,
  ],
  token: [isCarried, ['basic', optional(isBoolean), 'true or false']],
  jwt: [
    isCarried,
    ['algorithms', isTextList, 'a list of algorithms'],
    ['verify', isFunction, "verifyJwt of '@webhook-inbox/core/jwt'"],
  ],
  function: [['verify', isFunction, 'a function'], ...secretRules],
}

const handshakeRules: readonly Rule[] = [
  ['name', (value) => matches(value, /^[\x21-\x7e]+$/), 'a name without blanks'],
  [
    'method',
    optional(oneOf('GET', 'HEAD', 'POST', 'OPTIONS')),
    "'GET', 'HEAD', 'POST' or 'OPTIONS'",
  ],
  ['signed', optional(isBoolean), 'true or false'],
  [
    'when',
    (value) => Array.isArray(value) && value.length > 0 && value.every(isField),
    'a list of at least one condition',
  ],
  ['token', optional(isField), field],
  ['answer', isObject, '{ status?, text?, json?, headers? }'],
]

const itemRules: readonly Rule[] = [
  ['list', isText, "the path of the list, '' when the body is the list"],
  ['each', optional(isText), 'a path'],
  ['id', isSource, source],
  ['event', isSource, source],
]

function at(value: unknown, path: string): unknown {
  if (path === '') return value
  let current = value
  for (const name of path.split('.'))
    current = isObject(current) ? Reflect.get(current, name) : undefined
  return current
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isBoolean(value: unknown): boolean {
  return typeof value === 'boolean'
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every(isText)
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

function isField(value: unknown): boolean {
  if (!isObject(value)) return false
  return (
    isHeaderName(at(value, 'header')) ||
    matches(at(value, 'body'), /./) ||
    matches(at(value, 'query'), /./)
  )
}

function isSource(value: unknown): boolean {
  if (typeof value === 'function' || isField(value)) return true
  const list = at(value, 'anyOf') ?? at(value, 'join')
  return (
    matches(at(value, 'value'), /./) ||
    at(value, 'digest') === 'body' ||
    (Array.isArray(list) && list.length > 0 && list.every(isSource))
  )
}

function isIdSource(value: unknown): boolean {
  return isSource(value) || at(value, 'dedup') === 'none'
}

function isContent(value: unknown): boolean {
  if (typeof value === 'function') return true
  if (typeof value !== 'string' || value === '') return false
  try {
    return placeholdersOf(value).length > 0
  } catch {
    return false
  }
}

function isEndpoint(value: unknown): boolean {
  const pattern = at(value, 'pattern')
  // A pattern with a memory gives another answer to every second request.
  const isStable = pattern instanceof RegExp && !pattern.global && !pattern.sticky
  return isStable && isHeaderName(at(value, 'header'))
}

function isSuccess(value: unknown): boolean {
  const status = at(value, 'status')
  const when = at(value, 'when')
  if (when !== undefined && !(Array.isArray(when) && when.every(isField))) return false
  return isCount(status) && status >= 200 && status < 300
}

function oneOf(...words: readonly string[]): (value: unknown) => boolean {
  return (value) => typeof value === 'string' && words.includes(value)
}

function optional(isRight: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || isRight(value)
}
