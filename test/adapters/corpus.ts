import { signRequest } from '@webhook-inbox/testkit'
import type { PlainRequest } from './exchange.ts'
import { webhookPath } from './server.ts'

export const secret = "It's a Secret to Everybody"
export const maxBodyBytes = 1000

export interface CorpusEntry {
  readonly name: string
  readonly request: PlainRequest
  /** What every adapter has to answer. */
  readonly status: number
}

interface Draft {
  readonly method?: string
  readonly path?: string
  readonly event?: string
  readonly id?: string
  readonly hookId?: string
  readonly key?: string
  readonly body?: string | Uint8Array<ArrayBuffer>
  readonly form?: boolean
  readonly chunked?: boolean
  /** Undefined takes a header away, a list sends it several times. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
}

const drafts: readonly (readonly [name: string, status: number, draft: Draft])[] = [
  ['a delivery', 200, {}],
  ['its copy', 200, {}],
  ['the same id on another hook', 200, { hookId: '2' }],
  ['no hook id', 200, { hookId: '' }],
  ['a form', 200, { id: 'form', form: true }],
  [
    'a form with parameters and capitals',
    200,
    {
      id: 'form-2',
      form: true,
      headers: { 'content-type': 'Application/X-WWW-Form-URLencoded;q=1' },
    },
  ],
  [
    'a form without its field',
    200,
    {
      id: 'form-3',
      body: 'other=1',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    },
  ],
  [
    'a form with a broken escape',
    200,
    {
      id: 'form-4',
      body: 'payload=%',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    },
  ],
  [
    'JSON with a charset',
    200,
    { id: 'type-1', headers: { 'content-type': 'application/json; charset=utf-8' } },
  ],
  ['an unknown content type', 200, { id: 'type-2', headers: { 'content-type': 'text/plain' } }],
  ['a content type that is none', 200, { id: 'type-3', headers: { 'content-type': ';;;' } }],
  ['no content type', 200, { id: 'type-4', headers: { 'content-type': undefined } }],
  [
    'a forged body',
    401,
    { id: 'forged', headers: { 'x-hub-signature-256': `sha256=${'0'.repeat(64)}` } },
  ],
  ['another secret', 401, { id: 'forged', key: 'another secret' }],
  ['no signature', 401, { id: 'forged', headers: { 'x-hub-signature-256': undefined } }],
  ['a blank signature', 401, { id: 'forged', headers: { 'x-hub-signature-256': '' } }],
  [
    'a signature that is no hex',
    401,
    { id: 'forged', headers: { 'x-hub-signature-256': 'sha256=zz' } },
  ],
  ['a long signature', 401, { id: 'forged', headers: { 'x-hub-signature-256': 'x'.repeat(4000) } }],
  [
    'two signatures',
    401,
    { id: 'forged', headers: { 'x-hub-signature-256': ['sha256=00', 'sha256=01'] } },
  ],
  [
    'a special word as signature',
    401,
    { id: 'forged', headers: { 'x-hub-signature-256': '__proto__' } },
  ],
  [
    'only the old signature',
    401,
    {
      id: 'forged',
      headers: { 'x-hub-signature-256': undefined, 'x-hub-signature': `sha1=${'0'.repeat(40)}` },
    },
  ],
  ['no delivery id', 400, { headers: { 'x-github-delivery': undefined } }],
  ['a blank delivery id', 400, { headers: { 'x-github-delivery': ' ' } }],
  ['two delivery ids', 400, { headers: { 'x-github-delivery': ['one', 'two'] } }],
  ['a delivery id with a space', 400, { headers: { 'x-github-delivery': 'one two' } }],
  ['a delivery id beyond ASCII', 400, { headers: { 'x-github-delivery': 'caf\u00e9' } }],
  ['a delivery id of 256 characters', 400, { headers: { 'x-github-delivery': 'x'.repeat(256) } }],
  ['a delivery id of 255 characters', 200, { id: 'x'.repeat(255) }],
  ['a special word as id and event', 200, { id: '__proto__', event: '__proto__' }],
  ['the copy of a special word', 200, { id: '__proto__', event: '__proto__' }],
  ['no event', 400, { headers: { 'x-github-event': undefined } }],
  ['a blank event', 400, { headers: { 'x-github-event': '' } }],
  ['an event with a space', 400, { headers: { 'x-github-event': 'pull request' } }],
  ['two events', 400, { headers: { 'x-github-event': ['push', 'ping'] } }],
  ['a hook id that is a word', 400, { hookId: 'abc' }],
  ['a hook id of 21 digits', 400, { hookId: '1'.repeat(21) }],
  ['two hook ids', 400, { headers: { 'x-github-hook-id': ['1', '2'] } }],
  ['a ping', 200, { event: 'ping', id: 'ping' }],
  ['a forged ping', 401, { event: 'ping', id: 'ping', key: 'another secret' }],
  ['an event that is not listed', 202, { event: 'star', id: 'ignored' }],
  [
    'an action that is not listed',
    202,
    { event: 'issues', id: 'closed', body: '{"action":"closed"}' },
  ],
  ['an action that is listed', 200, { event: 'issues', id: 'opened', body: '{"action":"opened"}' }],
  ['the largest body', 200, { id: 'exact', body: 'x'.repeat(maxBodyBytes) }],
  ['a body one byte too large', 413, { id: 'over', body: 'x'.repeat(maxBodyBytes + 1) }],
  [
    'a chunked body too large',
    413,
    {
      id: 'over',
      body: 'x'.repeat(maxBodyBytes + 1),
      chunked: true,
    },
  ],
  ['a chunked body', 200, { id: 'chunked', chunked: true }],
  ['gzip', 415, { id: 'gzip', headers: { 'content-encoding': 'gzip' } }],
  ['two encodings', 415, { id: 'gzip', headers: { 'content-encoding': ['identity', 'br'] } }],
  ['identity', 200, { id: 'identity', headers: { 'content-encoding': 'Identity' } }],
  ['an empty body', 200, { id: 'empty', body: '' }],
  ['a byte order mark', 200, { id: 'bom', body: '\ufeff{"a":1}' }],
  ['invalid UTF-8', 200, { id: 'utf-8', body: Uint8Array.from([0x22, 0xff, 0xc0, 0x80, 0x22]) }],
  ['every byte', 200, { id: 'bytes', body: Uint8Array.from({ length: 256 }, (_, byte) => byte) }],
  ['null', 200, { id: 'null', body: 'null' }],
  ['a number', 200, { id: 'number', body: '1e400' }],
  ['a string', 200, { id: 'string', body: '"text"' }],
  ['a list', 200, { id: 'list', body: '[]' }],
  ['half a body', 200, { id: 'half', body: '{"a":' }],
  [
    'a payload with __proto__',
    200,
    { id: 'proto', body: '{"__proto__":{"a":1},"action":"__proto__"}' },
  ],
  ['a payload beyond ASCII', 200, { id: 'unicode', body: '{"title":"café ☕ 👩‍🚀"}' }],
  ['a handler that throws', 500, { id: 'throws', event: 'throws' }],
  ['its redelivery before it is due', 503, { id: 'throws', event: 'throws' }],
  ['a handler that throws for good', 422, { id: 'rejects', event: 'rejects' }],
  ['the copy of a dead delivery', 202, { id: 'rejects', event: 'rejects' }],
  ['a handler that says failed', 503, { id: 'fails', event: 'fails' }],
  ['a handler that says failed for good', 422, { id: 'fails-dead', event: 'fails-dead' }],
  ['a store that is down', 503, { id: 'store-down' }],
  ['a secret that cannot be had', 503, { id: 'vault', headers: { 'x-tenant': 'broken' } }],
  ['a tenant that is unknown', 401, { id: 'tenant', headers: { 'x-tenant': 'unknown' } }],
  ['a query', 200, { id: 'query', path: `${webhookPath}?a=1&b=/x` }],
  ['a trailing slash', 200, { id: 'slash', path: `${webhookPath}/` }],
  ...['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].map(
    (method) => [`the method ${method}`, 405, { id: 'method', method }] as const,
  ),
]

/** One list of requests; the order matters, because copies are answered by what came before. */
export async function buildCorpus(): Promise<CorpusEntry[]> {
  return Promise.all(
    drafts.map(async ([name, status, draft]) => ({ name, status, request: await build(draft) })),
  )
}

async function build(draft: Draft): Promise<PlainRequest> {
  const { id = 'd-1', event = 'push', hookId = '1', key = secret, form = false } = draft
  const { method = 'POST', path = webhookPath, body = '{"ref":"refs/heads/main"}' } = draft
  const common = {
    secret: key,
    event,
    deliveryId: id,
    ...(hookId === '' ? {} : { endpoint: hookId }),
  }
  const signed =
    typeof body === 'string'
      ? await signRequest('github', { ...common, body, form })
      : await signRequest('github', { ...common, body })
  const headers: Record<string, string | readonly string[]> = { ...signed.headers }
  for (const [name, value] of Object.entries(draft.headers ?? {})) {
    if (value === undefined) delete headers[name]
    else headers[name] = value
  }
  const bytes =
    typeof signed.body === 'string' ? new TextEncoder().encode(signed.body) : signed.body
  return { method, path, headers, body: bytes, chunked: draft.chunked ?? false }
}
