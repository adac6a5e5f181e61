import {
  createInbox,
  createReceiver,
  githubWebhook,
  memoryStore,
  providers,
  verify,
  webhook,
} from '@webhook-inbox/core'
import { describe, expect, it } from 'vitest'

const { github } = providers
const hmac = [github.signature].flat()[0]
const store = memoryStore()
const handler = (): void => {}
const secret = 'a secret'

// Typed as unknown: what JavaScript users can pass, the compiler refuses.
function construct(options: unknown): () => unknown {
  return () => Reflect.apply(githubWebhook, undefined, [options])
}

describe('a mistake in the options is told at construction', () => {
  it.each([
    ['no secret', { store, handler }, /"secret" is missing.*process\.env/],
    ['an empty secret', { secret: '', store, handler }, /"secret" is blank.*is it set\?/],
    ['a blank secret', { secret: ' \t', store, handler }, /"secret" is blank/],
    ['an empty list', { secret: [], store, handler }, /"secret" is an empty list/],
    ['a blank one in a list', { secret: ['good', ''], store, handler }, /list with a blank/],
    ['a secret of the wrong kind', { secret: 42, store, handler }, /wrong kind \(number\)/],
    ['no store', { secret, handler }, /"store" is missing.*sqliteStore/],
    ['null as store', { secret, store: null, handler }, /"store" is missing/],
    ['a promise as store', { secret, store: Promise.resolve(store), handler }, /not a store/],
    ['a client as store', { secret, store: { query() {} }, handler }, /lacks claim/],
    ['store and inbox', { secret, store, inbox: createInbox({ store }), handler }, /not both/],
    ['a store as inbox', { secret, inbox: store, handler }, /createInbox/],
    [
      'a misspelt option',
      { secret, store, handler, secrets: 'x' },
      /unknown option "secrets".*Did you mean "secret"/,
    ],
    ['a foreign option', { secret, store, handler, colour: 'red' }, /Known options: .*secret/],
    ['a lease of 0', { secret, store, handler, leaseMs: 0 }, /"leaseMs" must be a whole number/],
    ['a lease in words', { secret, store, handler, leaseMs: '30s' }, /"leaseMs"/],
    [
      'an endless lease',
      { secret, store, handler, leaseMs: Number.POSITIVE_INFINITY },
      /"leaseMs"/,
    ],
    ['a timeout below 0', { secret, store, handler, storeTimeoutMs: -1 }, /"storeTimeoutMs"/],
    ['a limit of NaN', { secret, store, handler, maxBodyBytes: Number.NaN }, /"maxBodyBytes"/],
    ['attempts of 0', { secret, store, handler, retry: { maxAttempts: 0 } }, /"retry.maxAttempts"/],
    [
      'a misspelt retry',
      { secret, store, handler, retry: { maxAttempt: 3 } },
      /Did you mean "maxAttempts"/,
    ],
    [
      'a misspelt retention',
      { secret, store, handler, retention: { complete: 3 } },
      /Did you mean "completedMs"/,
    ],
    ['an empty allow-list', { secret, store, handler, events: [] }, /"events" must be a list/],
    ['one event as text', { secret, store, handler, events: 'push' }, /"events" must be a list/],
    [
      'a wrong inFlight',
      { secret, store, handler, inFlight: '503' },
      /'accept' \(202\) or 'retry' \(503\)/,
    ],
    ['a handler that is none', { secret, store, handler: 'push' }, /"handler" is missing/],
    ['a relative path', { secret, store, handler, path: 'hook' }, /"path" must begin with "\/"/],
    ['a path with a query', { secret, store, handler, path: '/hook?x=1' }, /"path"/],
    ['a misspelt path', { secret, store, handler, paht: '/hook' }, /Did you mean "path"/],
    ['a pattern', { secret, store, handler, path: '/hooks/:tenant' }, /"path" is no pattern/],
    ['a wildcard', { secret, store, handler, path: '/hooks/*' }, /"path" is no pattern/],
    [
      'a guard that is no boolean',
      { secret, store, handler, replayGuard: 'yes' },
      /"replayGuard" must be true or false/,
    ],
    [
      'an observer object',
      { secret, store, handler, observer: {} },
      /"observer" must be a function/,
    ],
    [
      'an endpoint of the wrong kind',
      { secret, store, handler, endpoint: 7 },
      /"endpoint" must be a string/,
    ],
    ['nothing at all', undefined, /"handler" is missing/],
    [
      'a retention as number',
      { secret, store, handler, retention: 30 },
      /"retention": pass an obj/,
    ],
    ['retry as number', { secret, store, handler, retry: 5 }, /"retry": pass an object/],
    ['retry as list', { secret, store, handler, retry: [] }, /"retry": pass an object/],
    ['a dead letter switch', { secret, store, handler, deadLetter: true }, /"deadLetter": pass an/],
    [
      'a retention that no date can hold',
      { secret, store, handler, retention: { completedMs: Number.MAX_SAFE_INTEGER } },
      /"retention.completedMs" must be .* \(a hundred years\)/,
    ],
    [
      'an endless retention',
      { secret, store, handler, retention: { deadMs: Number.POSITIVE_INFINITY } },
      /\(a hundred years\)/,
    ],
    ['a body limit of 0', { secret, store, handler, maxBodyBytes: 0 }, /whole number of bytes/],
    [
      'an event that no header can say',
      { secret, store, handler, events: ['push '] },
      /event names without spaces/,
    ],
    [
      'an endpoint with half a character',
      { secret, store, handler, endpoint: 'a\ud800' },
      /"endpoint" must be a string/,
    ],
  ])('%s', (_name, options, message) => {
    expect(construct(options)).toThrow(message)
    expect(construct(options)).toThrow(expect.objectContaining({ code: 'ERR_OPTION' }))
  })

  it('policy beside a shared inbox', () => {
    const inbox = createInbox({ store })
    expect(construct({ secret, inbox, handler, leaseMs: 1000 })).toThrow(
      /"leaseMs" belongs to the shared inbox/,
    )
  })

  it('an unknown provider, with the nearest known one', () => {
    const options: unknown = { provider: 'gihtub', secret, store, handler }
    expect(() => Reflect.apply(webhook, undefined, [options])).toThrow(
      /Unknown provider "gihtub"\. Did you mean "github"\?/,
    )
  })

  it.each(['__proto__', 'constructor', 'toString'])('the name %s is no provider', (provider) => {
    const options: unknown = { provider, secret, store, handler }
    expect(() => Reflect.apply(webhook, undefined, [options])).toThrow(/Unknown provider/)
  })

  it.each([
    ['no signature', { signature: undefined }, /"signature" must be a scheme/],
    ['no scheme', { signature: [] }, /"signature" must be .*at least one/],
    ['an unknown scheme', { signature: { scheme: 'md5' } }, /"signature.scheme" must be 'hmac'/],
    [
      'an unknown placeholder',
      { signature: { ...hmac, content: '{time}.{body}' } },
      /"signature.content" must be a template .* known placeholders/,
    ],
    ['a field that there is not', { idSource: 'x' }, /"idSource" must be left out/],
    ['a hash in lower case', { signature: { ...hmac, hash: 'sha256' } }, /hash/],
    [
      'a header with capitals',
      { signature: { ...hmac, header: 'X-Signature' } },
      /"signature.header" must be a header name in lower case/,
    ],
    ['an id from nowhere', { deliveryId: {} }, /"deliveryId" must be/],
    ['an id header with capitals', { deliveryId: { header: 'X-Id' } }, /"deliveryId" must be/],
    [
      'a pattern with a memory',
      { endpoint: { header: 'x-hook', pattern: /^[0-9]+$/g } },
      /"endpoint.pattern" must be .* without the flags 'g' and 'y'/,
    ],
    ['ping events that are no list', { pingEvents: 'ping' }, /"pingEvents" must be a list/],
    ['a limit of nothing', { maxBodyBytes: 0 }, /"maxBodyBytes" must be/],
    ['no retention', { retentionMs: undefined }, /"retentionMs" must be/],
    ['a blank name', { name: '' }, /"name" must be a lower-case name/],
  ])('a provider entry with %s', (_name, wrong, message) => {
    const options: unknown = { provider: { ...github, ...wrong }, secret, store, handler }
    const make = () => Reflect.apply(webhook, undefined, [options])
    expect(make).toThrow(message)
    expect(make).toThrow(expect.objectContaining({ code: 'ERR_OPTION' }))
  })

  it('accepts absent options as undefined', () => {
    const options = { leaseMs: undefined, retry: undefined, retention: undefined, path: undefined }
    expect(construct({ secret, store, handler, ...options })).not.toThrow()
    expect(
      construct({ secret, store, handler, deadLetter: undefined, events: undefined }),
    ).not.toThrow()
  })

  it('a blank secret for verify', async () => {
    await expect(
      verify('github', { headers: {}, body: new Uint8Array(), secret: '' }),
    ).rejects.toMatchObject({ code: 'ERR_OPTION' })
  })
})

describe('a secret function', () => {
  const request = (receiver: ReturnType<typeof createReceiver>) =>
    receiver.receive(
      {
        method: 'POST',
        url: '/',
        headers: {
          'x-hub-signature-256': 'sha256=00',
          'x-github-event': 'push',
          'x-github-delivery': '1',
        },
        body: new Uint8Array(),
      },
      undefined,
    )

  it.each([
    ['a blank one', () => ''],
    ['a list with a blank one', () => ['a', ' ']],
    [
      'a throw',
      () => {
        throw new Error('the vault is sealed')
      },
    ],
    ['a rejection', () => Promise.reject(new Error('the vault is sealed'))],
  ])('that gives %s is a 503 and never an empty key', async (_name, secretOf) => {
    const heard: unknown[] = []
    const receiver = createReceiver({
      provider: 'github',
      secret: secretOf,
      store,
      onError: (error) => heard.push(error),
    })
    expect(await request(receiver)).toMatchObject({
      code: 'secret_unavailable',
      answer: { status: 503 },
    })
    expect(heard).toHaveLength(1)
    expect(heard[0]).toMatchObject({ code: 'ERR_SECRET_UNAVAILABLE' })
  })

  it.each([
    ['undefined', () => undefined],
    ['an empty list', () => []],
    ['null', async () => JSON.parse('null')],
  ])('that gives %s knows no such tenant: 401', async (_name, secretOf) => {
    const receiver = createReceiver({ provider: 'github', secret: secretOf, store })
    expect(await request(receiver)).toMatchObject({
      code: 'signature_mismatch',
      answer: { status: 401 },
    })
  })

  it('that never answers is a 503 when the sender has stopped waiting', async () => {
    const heard: unknown[] = []
    const receiver = createReceiver({
      provider: { ...github, ackDeadlineMs: 20 },
      secret: () => new Promise<string>(() => {}),
      store,
      onError: (error) => heard.push(error),
    })
    expect(await request(receiver)).toMatchObject({
      code: 'secret_unavailable',
      answer: { status: 503 },
    })
    expect(heard).toMatchObject([
      { code: 'ERR_SECRET_UNAVAILABLE', message: expect.stringContaining('within 20 ms') },
    ])
  })
})
