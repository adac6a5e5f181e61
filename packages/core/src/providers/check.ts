import { nearest, optionError } from '../errors.ts'
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
  checkObject(entry, '', entryRules, entry)
  const { signature }: { signature?: unknown } = entry
  const list: readonly unknown[] = Array.isArray(signature) ? signature : [signature]
  if (list.length === 0) fail(entry, 'signature', 'a scheme, or a list of at least one')
  for (const [index, one] of list.entries()) {
    const path = Array.isArray(signature) ? `signature.${index}.` : 'signature.'
    const own = rulesOfScheme[String(at(one, 'scheme'))]
    if (own === undefined) fail(entry, `${path}scheme`, schemeNames)
    checkObject(one, path, [...schemeRules, ...own], entry)
    checkPart(one, path, 'timestamp', timestampRules, entry)
    checkPart(one, path, 'secret', secretRules, entry)
    checkPart(one, path, 'bodyHash', bodyHashRules, entry)
    checkTime(one, path, entry)
  }
  const handshakes: unknown = at(entry, 'handshakes')
  for (const [index, one] of (Array.isArray(handshakes) ? handshakes : []).entries()) {
    const path = `handshakes.${index}.`
    checkObject(one, path, handshakeRules, entry)
    checkPart(one, path, 'answer', answerRules, entry)
    const isProved = at(one, 'signed') !== false && (at(one, 'method') ?? 'POST') === 'POST'
    if (!isProved && hasHmac(at(one, 'answer'))) fail(entry, `${path}answer`, noOracle)
  }
  const items: unknown = at(entry, 'items')
  if (typeof items !== 'function') checkPart(entry, '', 'items', itemRules, entry)
  checkPart(entry, '', 'success', successRules, entry)
  checkPart(entry, '', 'endpoint', endpointRules, entry)
  checked.add(entry)
}

const noOracle = 'without an HMAC: whoever asks, unsigned, could have any body signed, and send it'

// A template and its time belong together.
function checkTime(one: unknown, path: string, entry: object): void {
  const content = at(one, 'content')
  const timestamp = at(one, 'timestamp')
  if (typeof content === 'string' && placeholdersOf(content).includes('timestamp')) {
    if (at(timestamp, 'header') === undefined)
      fail(entry, `${path}timestamp`, "{ header, unit }: the content has a '{timestamp}'")
  }
  if (timestamp === undefined) return
  if (at(timestamp, 'header') === undefined && at(timestamp, 'body') === undefined)
    fail(entry, `${path}timestamp`, 'with the "header" or the "body" path where the time is')
}

function hasHmac(answer: unknown): boolean {
  const values = [at(answer, 'text'), at(answer, 'json'), at(answer, 'headers')]
  return values.some(
    (value) =>
      isObject(value) &&
      ('hmac' in value || Object.values(value).some((one) => at(one, 'hmac') !== undefined)),
  )
}

/** A name as the module of entries exports it. */
export function camel(name: string): string {
  return name.replaceAll(/[^a-zA-Z0-9]+(.)?/g, (_, letter: string | undefined) =>
    (letter ?? '').toUpperCase(),
  )
}

type Rule = readonly [field: string, isRight: (value: unknown) => boolean, rule: string]

/** Every field is right, and none is unknown: one that is misspelt would be a check that is not there. */
function checkObject(value: unknown, path: string, rules: readonly Rule[], entry: object): void {
  if (!isObject(value)) fail(entry, path.slice(0, -1), 'an object')
  for (const [field, isRight, rule] of rules) {
    if (!isRight(at(value, field))) fail(entry, (path + field).replace(/\.$/, ''), rule)
  }
  const known = [...new Set(rules.map(([field]) => field))].filter((field) => field !== '')
  for (const name of namesOf(value)) {
    if (known.includes(name)) continue
    const near = nearest(name, known)
    const meant = near === undefined ? '' : `, did you mean "${near}"?`
    fail(
      entry,
      path + name,
      `left out: there is no such field${meant || `; known are ${known.join(', ')}`}`,
    )
  }
}

function checkPart(
  object: unknown,
  path: string,
  name: string,
  rules: readonly Rule[],
  entry: object,
): void {
  const part = at(object, name)
  if (part !== undefined) checkObject(part, `${path}${name}.`, rules, entry)
}

function fail(entry: object, field: string, rule: string): never {
  throw optionError(
    `The provider entry ${JSON.stringify(at(entry, 'name')) ?? ''}: "${field}" must be ${rule}${rule.endsWith('?') ? '' : '.'}`,
  )
}

const lowerCaseHeader = 'a header name in lower case'
const source = `{ header: 'x-name' } with ${lowerCaseHeader}, { body: 'path.in.body' }, { query: 'name' }, { value }, { anyOf: [] }, { join: [] }, { digest: 'body' } or a function`
const field = `{ header: 'x-name' } with ${lowerCaseHeader}, { body: 'path.in.body' } or { query: 'name' }`
const condition =
  "{ header: 'x-name', equals: 'value' }, with body or query in place of header, and absent: true, includes or nothing in place of equals"
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
  ['covers', optional(isSource), source],
  ['action', optional(isSource), source],
  ['endpoint', optional(isObject), '{ header, pattern }'],
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
  ['success', optional(isObject), '{ status: 200 to 299, body?, contentType?, when? }'],
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
  ['sources', optional(Array.isArray), 'a list of { url, asOf }'],
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
  ['separator', optional(isFilled), 'a text that is not empty'],
  ['prefix', optional(isText), 'a text, or left out when there is none'],
  ['bare', optional(isBoolean), 'true or false'],
  ['groups', optional(isFilled), 'a text that is not empty'],
  [
    'when',
    optional(
      (value) =>
        Array.isArray(value) &&
        value.every((one) => isCondition(one) && at(one, 'body') === undefined),
    ),
    `a list of conditions on a header or the query: ${condition}; nothing of the body is proved yet`,
  ],
  ['deliveryId', optional(isSource), source],
  [
    'bodyIs',
    optional((value) => typeof value === 'function' || value === 'json' || value === 'form'),
    "'json', 'form' or a function that tells which",
  ],
]

const encodings = ['hex', 'base64', 'base64url'] as const
const isHash = oneOf('SHA-1', 'SHA-256', 'SHA-512')
const isPattern = (value: unknown): boolean =>
  // A pattern with a memory gives another answer to every second request.
  value instanceof RegExp && !value.global && !value.sticky
const pattern = "a regular expression without the flags 'g' and 'y'"
const secretRules: readonly Rule[] = [
  ['encoding', optional(oneOf('utf8', 'hex', 'base64')), "'utf8', 'hex' or 'base64'"],
  ['prefix', optional(isText), 'a text'],
  ['withoutPrefix', optional(oneOf('same', 'utf8', 'refuse')), "'same', 'utf8' or 'refuse'"],
  ['pattern', optional(isPattern), pattern],
  ['scope', optional(isPattern), pattern],
  ['derive', optional(isHash), "'SHA-1', 'SHA-256' or 'SHA-512'"],
]
const timestampRules: readonly Rule[] = [
  ['unit', oneOf('s', 'ms', 'iso', 'http-date'), "'s', 'ms', 'iso' or 'http-date'"],
  ['header', optional(isHeaderName), lowerCaseHeader],
  ['body', optional(isText), 'a path in the body'],
  ['separator', optional(isFilled), 'a text that is not empty'],
  ['prefix', optional(isText), 'a text'],
  ['pastMs', optional(isCount), 'a positive whole number of milliseconds'],
  [
    'futureMs',
    optional((value) => value === 0 || isCount(value)),
    'a whole number of milliseconds',
  ],
]
const bodyHashRules: readonly Rule[] = [
  ['claim', isText, 'the name of a claim'],
  ['encoding', oneOf('hex', 'base64'), "'hex' or 'base64'"],
  ['optional', optional(isBoolean), 'true or false'],
]
const timestamp = "{ header, unit: 's', pastMs: 300_000 }"
const secretFormat = "{ encoding: 'base64', prefix: 'whsec_' }"
const contentRules: readonly Rule[] = [
  [
    'content',
    isContent,
    "a template such as '{timestamp}.{body}' with known placeholders, or a function",
  ],
  ['signsUrl', optional(isBoolean), 'true or false'],
  ['timestamp', optional(isObject), timestamp],
  ['secret', optional(isObject), secretFormat],
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
    ['header', isHeaderName, `${lowerCaseHeader}, one`],
    [
      'algorithms',
      isAlgorithmList,
      "a list of 'HS256', 'RS256' or the like: of shared keys or of public keys, never both, for then the public key would be the shared one",
    ],
    [
      'issuer',
      optional((value) => isText(value) || isTextList(value)),
      'a text, or a list of texts',
    ],
    [
      'secretHolds',
      optional(oneOf('key', 'issuer:key', 'audience email')),
      "'key', 'issuer:key' or 'audience email'",
    ],
    ['keysUrl', optional((value) => matches(value, /^https:\/\//)), 'an https address'],
    ['requiredClaims', optional(isTextList), 'a list of claims'],
    ['bodyHash', optional(isObject), "{ claim, encoding: 'hex' }"],
    ['urlHash', optional(isText), 'the name of a claim'],
    ['maxAgeMs', optional(isCount), 'a positive whole number of milliseconds'],
    [
      'skewMs',
      optional((value) => value === 0 || isCount(value)),
      'a whole number of milliseconds',
    ],
    ['keyless', optional(isBoolean), 'true or false'],
    ['verify', isFunction, "verifyJwt of '@webhook-inbox/core/jwt'"],
  ],
  function: [
    ['verify', isFunction, 'a function'],
    ['secret', optional(isObject), secretFormat],
    ['signsUrl', optional(isBoolean), 'true or false'],
    ['keyless', optional(isBoolean), 'true or false'],
    ['readsTime', optional(isBoolean), 'true or false'],
    ['asksKeys', optional(isBoolean), 'true or false'],
  ],
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
    (value) => Array.isArray(value) && value.length > 0 && value.every(isCondition),
    `a list of at least one condition: ${condition}`,
  ],
  ['token', optional(isField), field],
  ['answer', isObject, '{ status?, text?, json?, headers? }'],
]

const answerValue = `${field}, { value: a text or number } or { hmac: a field }`
const answerRules: readonly Rule[] = [
  [
    'status',
    optional((value) => isCount(value) && value >= 200 && value <= 299),
    'a number from 200 to 299',
  ],
  ['text', optional(isAnswerValue), answerValue],
  [
    'json',
    optional((value) => isPlain(value) && Object.values(value).every(isAnswerValue)),
    `an object of names to ${answerValue}`,
  ],
  [
    'headers',
    optional(
      (value) =>
        isPlain(value) &&
        Object.entries(value).every(([name, one]) => isHeaderName(name) && isAnswerValue(one)),
    ),
    `an object of header names in lower case to ${answerValue}`,
  ],
]

const successRules: readonly Rule[] = [
  ['status', (value) => isCount(value) && value >= 200 && value < 300, 'a number from 200 to 299'],
  ['body', optional(isText), 'a text'],
  ['contentType', optional(isText), 'a text'],
  [
    'when',
    optional((value) => Array.isArray(value) && value.every(isCondition)),
    `a list of conditions: ${condition}`,
  ],
]

const endpointRules: readonly Rule[] = [
  ['header', isHeaderName, lowerCaseHeader],
  ['pattern', isPattern, pattern],
]

const itemRules: readonly Rule[] = [
  ['list', isText, "the path of the list, '' when the body is the list"],
  ['each', optional(isText), 'a path'],
  ['id', isSource, source],
  ['event', isSource, source],
  ['attempt', optional(isText), 'a name in the item'],
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

function isFilled(value: unknown): boolean {
  return isText(value) && value !== ''
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

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function hasOnly(value: unknown, ...names: readonly string[]): value is object {
  return isPlain(value) && namesOf(value).every((name) => names.includes(name))
}

/** The names of the fields that are there: the types allow `undefined` for one that is not. */
function namesOf(value: object): readonly string[] {
  return Object.entries(value).flatMap(([name, one]) => (one === undefined ? [] : [name]))
}

function isField(value: unknown): boolean {
  return (
    (hasOnly(value, 'header', 'listedIn') &&
      isHeaderName(at(value, 'header')) &&
      optional(isHeaderName)(at(value, 'listedIn'))) ||
    (hasOnly(value, 'body') && isText(at(value, 'body'))) ||
    (hasOnly(value, 'query') && matches(at(value, 'query'), /./))
  )
}

function isCondition(value: unknown): boolean {
  if (!isPlain(value)) return false
  const { equals, absent, includes, ...source }: Record<string, unknown> = { ...value }
  const said = [equals, absent, includes].filter((one) => one !== undefined)
  return (
    isField(source) &&
    said.length <= 1 &&
    (equals === undefined || isText(equals) || typeof equals === 'number') &&
    (absent === undefined || absent === true) &&
    (includes === undefined || matches(includes, /./))
  )
}

function isAnswerValue(value: unknown): boolean {
  if (hasOnly(value, 'value')) {
    const constant = at(value, 'value')
    return isText(constant) || typeof constant === 'number'
  }
  return (hasOnly(value, 'hmac') && isField(at(value, 'hmac'))) || isField(value)
}

function isSource(value: unknown): boolean {
  if (typeof value === 'function' || isField(value)) return true
  if (hasOnly(value, 'value')) return matches(at(value, 'value'), /[\x21-\x7e]/)
  if (hasOnly(value, 'digest')) return at(value, 'digest') === 'body'
  if (!hasOnly(value, 'anyOf') && !hasOnly(value, 'join', 'separator')) return false
  const separator = at(value, 'separator')
  const list = at(value, 'anyOf') ?? at(value, 'join')
  return (
    (separator === undefined || isText(separator)) &&
    Array.isArray(list) &&
    list.length > 0 &&
    list.every(isSource)
  )
}

function isAlgorithmList(value: unknown): boolean {
  if (!Array.isArray(value) || value.length === 0) return false
  if (!value.every((one) => matches(one, /^((HS|RS|ES|PS)(256|384|512)|EdDSA|Ed25519)$/)))
    return false
  return value.every((one) => one.startsWith('HS') === value[0].startsWith('HS'))
}

function isIdSource(value: unknown): boolean {
  return isSource(value) || (hasOnly(value, 'dedup') && at(value, 'dedup') === 'none')
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

function oneOf(...words: readonly string[]): (value: unknown) => boolean {
  return (value) => typeof value === 'string' && words.includes(value)
}

function optional(isRight: (value: unknown) => boolean): (value: unknown) => boolean {
  return (value) => value === undefined || isRight(value)
}
