import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  createReceiver,
  defineProvider,
  type Fact,
  getProvider,
  jwtProviderNames,
  memoryStore,
  type Provider,
  providerNames,
  verify,
} from '@webhook-inbox/core'
import * as entryModule from '@webhook-inbox/core/providers'
import { type SignedRequest, signRequest } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { allEntries, credentialsOf, headersFor, jwtEntries } from './keys.ts'

const url = 'https://hooks.example.test/in?a=1'

// What an entry says, and so has to have a source for, or to be marked.
function factsOf(entry: Provider): readonly Fact[] {
  return [
    'signature',
    'deliveryId',
    'event',
    'retries',
    ...(entry.handshakes === undefined ? [] : (['handshakes'] as const)),
    ...(entry.ackDeadlineMs === undefined ? [] : (['ackDeadline'] as const)),
    ...(entry.maxBodyBytes === undefined ? [] : (['maxBody'] as const)),
    ...(entry.success === undefined ? [] : (['success'] as const)),
    ...(entry.stopStatuses === undefined && entry.stopHeader === undefined
      ? []
      : (['stop'] as const)),
  ]
}

function isFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  return Object.isFrozen(value) && Object.values(value).every(isFrozen)
}

describe('the catalogue', () => {
  it('has at least sixty entries, each in a file of its name', () => {
    expect(allEntries.length).toBeGreaterThanOrEqual(60)
    const folder = join(import.meta.dirname, '../../packages/core/src/providers/entries')
    const files = readdirSync(folder).map((file) => file.replace('.ts', ''))
    expect(allEntries.map(({ name }) => name).filter((name) => !files.includes(name))).toEqual([])
    expect([...providerNames, ...jwtProviderNames].sort()).toEqual(
      allEntries.map(({ name }) => name).sort(),
    )
    expect(Object.values(entryModule)).toHaveLength(providerNames.length)
  })

  it.each(allEntries.map((entry) => [entry.name, entry] as const))(
    '%s: is right, frozen, and has a source for every fact',
    (name, entry) => {
      expect(defineProvider(entry)).toBe(entry)
      expect(isFrozen(entry)).toBe(true)
      if (!jwtEntries.includes(entry)) expect(getProvider(name)).toBe(entry)
      const { sources = [], unconfirmed = [] } = entry
      expect(sources.length).toBeGreaterThan(0)
      for (const source of sources) {
        expect(source.url).toMatch(
          /^(https:\/\/\S+|npm:(@[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+ \S+|code:[\w-]+)$/,
        )
        expect(source.asOf).toMatch(/^20\d\d-\d\d-\d\d$/)
      }
      const stated = new Set(sources.flatMap(({ facts }) => facts ?? factsOf(entry)))
      const marked = unconfirmed.map((text) => text.split(':')[0])
      const missing = factsOf(entry).filter((fact) => !stated.has(fact) && !marked.includes(fact))
      expect(missing).toEqual([])
    },
  )

  it('suggests the nearest name, and the module of those that need jose', () => {
    const make = (provider: unknown) => () =>
      Reflect.apply(createReceiver, undefined, [{ provider, secret: 'x', store: memoryStore() }])
    expect(make('shopfy')).toThrow(/Unknown provider "shopfy"\. Did you mean "shopify"\?/)
    expect(make('stripe ')).toThrow(/Did you mean "stripe"\?/)
    expect(make('plaid')).toThrow(/import \{ plaid \} from '@webhook-inbox\/core\/jwt'/)
    expect(make('google-pubsub')).toThrow(/import \{ googlePubsub \}/)
  })
})

const schemes = allEntries.flatMap((entry) =>
  [entry.signature].flat().map(({ scheme }, index) => ({
    name: entry.name,
    scheme,
    index,
    entry,
  })),
)

describe('every scheme of every entry', () => {
  it.each(schemes)('$name ($scheme $index): what it signs is its own', async ({ entry, index }) => {
    const { secret, keys, privateKey } = credentialsOf(entry, index)
    const sending = {
      ...(secret === undefined ? {} : { secret }),
      ...(privateKey === undefined ? {} : { privateKey }),
      url,
      scheme: index,
      headers: headersFor(entry, index),
    }
    const receiving = {
      ...(secret === undefined ? {} : { secret }),
      ...(keys === undefined ? {} : { keys }),
    }
    const judge = ({ headers, body, query }: SignedRequest) =>
      verify(entry, {
        headers,
        body: new TextEncoder().encode(body),
        url: query === undefined ? url : `${url}&${query}`,
        ...receiving,
      })
    // Nothing has to be named.
    expect(await judge(await signRequest(entry, sending))).toMatchObject({ valid: true })

    const named = { ...sending, event: 'thing.created', deliveryId: 'd-1' }
    const request = await signRequest(entry, named)
    const verified = await judge(request)
    expect(verified).toMatchObject({ valid: true })
    if (!verified.valid) return
    const { delivery } = verified
    expect(delivery.provider).toBe(entry.name)
    expect(delivery.event).not.toBe('')
    expect(delivery.id).not.toBe('')

    // The same request under another secret of the same kind is nobody's.
    const other = await verify(entry, {
      headers: request.headers,
      body: new TextEncoder().encode(request.body),
      url,
      ...otherCredentials(entry, index),
    })
    expect(other.valid).toBe(false)
  })
})

const foreignKeys = [
  'MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=',
  '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
]

function otherCredentials(entry: Provider, index: number): Record<string, unknown> {
  const signature = [entry.signature].flat()[index]
  if (signature?.scheme === 'ed25519') {
    const raw = Buffer.from(foreignKeys[1] ?? '', 'hex')
    const { encoding = 'base64', prefix = '' } = signature.secret ?? {}
    return { secret: prefix + raw.toString(encoding === 'utf8' ? 'base64' : encoding) }
  }
  if (signature?.scheme === 'ecdsa-p256')
    return {
      secret:
        'MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEnjugedGzDLJsBwqR5NlEJt3LWZjWS+esBySj00whb4tXSu0shbhLpur99S8lcHndU9KIHJj+/CbMNHMfEvR0fw==',
    }
  const foreign =
    '-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAsMAGDfRoZhuR/EZu3barBAPzBMcporqt1YY2exrK3JAIN4nScDkmCxPG4rJLAa+1HiS/cuDoiF2QOQv+qLk99YPVDElBcJXkBZIPin6Oo6XqM6UxWErT+Sgtts/CVWAv0eiyecTVQ4AyK+1S5yxMxezkHVeiCCBKripBl2vr5HMrCSOUchVmRMKhvDSENgEinN8q7c1XiaYuIiC8PLP/CEW/O2s61AA9yGfX/5bEijfkRe9enwpwBFPEvzEwcNdDaRt53/080pj0H4yVbQrSNMG7/xJmf0j9Mq4MGgmmD2DN4v9YJ+yxyU6iu9r8zTF85P7pOGdlh3cUD8H4Rs2oFQIDAQAB\n-----END PUBLIC KEY-----\n'
  if (signature?.scheme === 'rsa') return { secret: foreign }
  if (entry.name === 'plaid')
    return {
      keys: () => ({
        kty: 'EC',
        crv: 'P-256',
        x: 'w2q1eCJxmb7zWlWSJ9GeDBM879w5zYt75TrDrRimLBw',
        y: '8QpOlfnZ0BZ4IBmPD7Cheg_tuY-2TICGdDBSS5XFiqs',
      }),
    }
  const { secret } = credentialsOf(entry, index)
  if (entry.name === 'google-pubsub' || entry.name === 'aws-sns')
    return { secret, keys: () => foreign }
  if (entry.name === 'paypal') return { secret: 'another-webhook', keys: () => foreign }
  return { secret }
}
