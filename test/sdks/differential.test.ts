import { isUtf8 } from 'node:buffer'
import https from 'node:https'
import { PassThrough } from 'node:stream'
import { verify } from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'
import fc from 'fast-check'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { type JudgedRequest, type Oracle, oracles, snsCertificateKey } from './oracles.ts'

const at = new Date('2026-12-01T00:00:00Z')
const usualUrl = 'https://hooks.example.test/in'

beforeAll(() => {
  // sns-validator fetches the certificate from the host that the message names.
  Reflect.set(https, 'get', (_url: unknown, answered: (response: PassThrough) => void) => {
    const response = Object.assign(new PassThrough(), { statusCode: 200 })
    setImmediate(() => {
      answered(response)
      response.end(snsCertificateKey)
    })
    return new PassThrough()
  })
})

beforeEach(() => {
  // Some libraries tell the console of every refusal.
  for (const name of ['log', 'warn', 'error', 'info'] as const)
    vi.spyOn(console, name).mockImplementation(() => {})
  vi.useFakeTimers({ toFake: ['Date'], now: at })
})

afterEach(() => {
  vi.useRealTimers()
})

async function ours(oracle: Oracle, request: JudgedRequest, now: Date = at): Promise<boolean> {
  return (await judged(oracle, request, now)).valid
}

/** Whether the signature holds, also where what was signed cannot be read. */
async function oursProves(oracle: Oracle, request: JudgedRequest): Promise<boolean> {
  const verified = await judged(oracle, request)
  return verified.valid || /^(?:delivery_id|event|timestamp)_missing$/.test(verified.code)
}

function judged({ entry, secret, keys }: Oracle, request: JudgedRequest, now: Date = at) {
  return verify(entry, {
    ...request,
    now,
    ...(secret === undefined ? {} : { secret }),
    ...(keys === undefined ? {} : { keys }),
  })
}

async function theirs(oracle: Oracle, request: JudgedRequest, now: Date = at): Promise<boolean> {
  vi.setSystemTime(now)
  try {
    const answer = await oracle.accepts(request)
    return answer !== false && answer !== undefined && answer !== null
  } catch {
    return false
  } finally {
    vi.setSystemTime(at)
  }
}

/** A request of ours with some text in it. */
async function signed(oracle: Oracle, text: string, when: Date = at): Promise<JudgedRequest> {
  const base = oracle.payload ?? {}
  const payload = Array.isArray(base) ? base.map((item) => ({ ...item, text })) : { ...base, text }
  const { url, ...sending } = sendingOf(oracle, when)
  const { headers, body } = await signRequest(oracle.entry, { ...sending, url, payload })
  return { headers, body: new TextEncoder().encode(body), url }
}

/** A request of ours with these bytes. */
async function signedBytes(oracle: Oracle, body: Uint8Array): Promise<JudgedRequest> {
  const { url, ...sending } = sendingOf(oracle, at)
  const { headers } = await signRequest(oracle.entry, { ...sending, url, body })
  return { headers, body, url }
}

function sendingOf(
  { secret, privateKey, scheme, headers = {}, event = 'thing.created', url = usualUrl }: Oracle,
  when: Date,
) {
  return {
    ...(secret === undefined ? {} : { secret }),
    ...(privateKey === undefined ? {} : { privateKey }),
    ...(scheme === undefined ? {} : { scheme }),
    kid: 'k1',
    event,
    url,
    at: when,
    headers,
  }
}

describe.each(oracles.map((oracle) => [oracle.sdk, oracle] as const))('%s', (_sdk, oracle) => {
  const { disagreements = {} } = oracle

  it('accepts what this library signs, whatever it says', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 60 }), async (text) => {
        const request = await signed(oracle, text)
        expect(await ours(oracle, request)).toBe(true)
        const isMeant = disagreements.dollars !== true || !text.includes('$')
        if (isMeant) expect(await theirs(oracle, request)).toBe(true)
      }),
      { numRuns: 40 },
    )
  })

  it('refuses with it every mutation, but for what is listed', async () => {
    const genuine = await signed(oracle, 'café ☕ 👩‍🚀 / \\ "quoted"')
    await fc.assert(
      fc.asyncProperty(mutationsOf(oracle, genuine), async ({ kind, request }) => {
        const [we, they] = [await ours(oracle, request), await theirs(oracle, request)]
        if (we === they) return
        const { reserialises, text, laxEncoding, laxNumbers, repeated } = disagreements
        // Whatever is accepted here is accepted there, except where it judges other bytes than those that came.
        if (we) expect([kind, reserialises]).toEqual([kind, true])
        else {
          const isListed =
            (kind === 'body' && (reserialises === true || text === true)) ||
            (kind === 'signature' && laxEncoding === true) ||
            (kind === 'time' && laxNumbers === true) ||
            (kind === 'repeated' &&
              (repeated === true || laxEncoding === true || laxNumbers === true))
          expect({ kind, request: shown(request), isListed }).toMatchObject({ isListed: true })
        }
      }),
      { numRuns: 400 },
    )
  })

  it('agrees on the age of a signature, but for what is listed', async () => {
    const { past = [], future = [], stricterFuture = [] } = disagreements
    const found: Record<string, number[]> = { past: [], future: [], stricterFuture: [] }
    for (const seconds of [0, 1, 4, 299, 301, 3600, 31_536_000]) {
      for (const direction of ['past', 'future'] as const) {
        const offset = direction === 'past' ? -seconds : seconds
        const request = await signed(oracle, 'x', new Date(at.getTime() + offset * 1000))
        const [we, they] = [await ours(oracle, request), await theirs(oracle, request)]
        if (they && !we) found[direction]?.push(seconds)
        if (we && !they)
          found[direction === 'future' ? 'stricterFuture' : 'stricterPast']?.push(seconds)
      }
    }
    const listed = (values: readonly number[]) =>
      values.filter((value) => [0, 1, 4, 299, 301, 3600, 31_536_000].includes(value))
    expect(found).toEqual({
      past: listed(past),
      future: listed(future),
      stricterFuture: listed(stricterFuture),
    })
  })
})

// For the signature stands in the body, or covers what a form in it says.
function isReadFirst({ entry, scheme = 0 }: Oracle): boolean {
  const signature = [entry.signature].flat()[scheme]
  return signature?.header === undefined || entry.name === 'twilio'
}

function readsJsonAlone({ entry, scheme = 0 }: Oracle): boolean {
  const signature = [entry.signature].flat()[scheme]
  const isBesideAddress = Object(signature).content === '{url}{body}'
  return signature?.bodyIs === 'json' || signature?.scheme === 'digest' || isBesideAddress
}

describe('signed bytes that are no text', () => {
  it.each(oracles.filter((oracle) => !isReadFirst(oracle)))(
    '$sdk: are taken here, and there where it takes bytes',
    async (oracle) => {
      const { body } = await signed(oracle, 'MARK')
      const start = new TextDecoder().decode(body).indexOf('MARK')
      expect(start).not.toBe(-1)
      const high = fc.uint8Array({ min: 0x80, max: 0xff, minLength: 1, maxLength: 8 })
      await fc.assert(
        fc.asyncProperty(high, async (bytes) => {
          const given = Uint8Array.of(...body.slice(0, start), ...bytes, ...body.slice(start + 4))
          const request = await signedBytes(oracle, given)
          // Where the bytes could be moved, what is no JSON is not the sender's.
          const isTaken = isUtf8(given) || !readsJsonAlone(oracle)
          expect(await oursProves(oracle, request)).toBe(isTaken)
          expect(await theirs(oracle, request)).toBe(
            isUtf8(given) || oracle.disagreements?.text !== true,
          )
        }),
        { numRuns: 60 },
      )
    },
  )
})

describe('libraries that take a text for something else', () => {
  it.each(oracles.filter(({ disagreements }) => disagreements?.dollars === true))(
    '$sdk: "$$" is what it is here',
    async (oracle) => {
      const request = await signed(oracle, '$$')
      expect(await ours(oracle, request)).toBe(true)
      expect(await theirs(oracle, request)).toBe(false)
    },
  )
})

describe('libraries that sign', () => {
  it.each(oracles.filter(({ sign }) => sign !== undefined))(
    '$sdk: what it signs is accepted here',
    async (oracle) => {
      await fc.assert(
        fc.asyncProperty(fc.string({ unit: 'grapheme', maxLength: 60 }), async (text) => {
          const made = await signed(oracle, text)
          const headers = { ...made.headers, ...Object(await oracle.sign?.(textOf(made), at)) }
          const request = { ...made, headers }
          expect(await theirs(oracle, request)).toBe(true)
          expect(await ours(oracle, request)).toBe(true)
        }),
        { numRuns: 40 },
      )
    },
  )
})

function textOf({ body }: JudgedRequest): string {
  return new TextDecoder().decode(body)
}

function shown({ headers, body }: JudgedRequest): unknown {
  return { headers, body: new TextDecoder().decode(body) }
}

/** The header with the signature, those with a time, and the body: one change each. */
function mutationsOf(oracle: Oracle, genuine: JudgedRequest) {
  const signature = [oracle.entry.signature].flat()[oracle.scheme ?? 0]
  const header = [signature?.header ?? []].flat()[0]
  const time =
    signature !== undefined && 'timestamp' in signature ? signature.timestamp?.header : undefined
  const names = [header, time === header ? undefined : time].filter(
    (name): name is string => name !== undefined && genuine.headers[name] !== undefined,
  )
  const kindOf = (name: string): string => (name === header ? 'signature' : 'time')
  const withHeader = (name: string, value: string) => ({
    kind: kindOf(name),
    request: { ...genuine, headers: { ...genuine.headers, [name]: value } },
  })
  const printable = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code))
  const inHeaders = names.map((name) => {
    const value = genuine.headers[name] ?? ''
    const position = fc.nat({ max: Math.max(0, value.length - 1) })
    return fc.oneof(
      fc
        .tuple(position, printable)
        .map(([index, char]) =>
          withHeader(name, value.slice(0, index) + char + value.slice(index + 1)),
        ),
      position.map((index) => withHeader(name, value.slice(0, index))),
      fc.constant({ ...withHeader(name, `${value},${value}`), kind: 'repeated' }),
      fc
        .constantFrom(
          value.toUpperCase(),
          value.replace(/=+$/, ''),
          value.replaceAll('+', '-').replaceAll('/', '_'),
          `${value}0`,
          `${value}abc`,
          '',
          '0',
          'NaN',
          'v1=',
          'sha256=',
        )
        .map((changed) => withHeader(name, changed)),
      fc
        .string({ maxLength: 80 })
        .filter(isHeaderText)
        .map((changed) => withHeader(name, changed)),
    )
  })
  const withBody = (body: Uint8Array) => ({ kind: 'body', request: { ...genuine, body } })
  const inBody = fc.oneof(
    fc
      .tuple(fc.nat({ max: genuine.body.length - 1 }), fc.integer({ min: 1, max: 255 }))
      .map(([index, by]) => {
        const body = Uint8Array.from(genuine.body)
        body[index] = ((body[index] ?? 0) + by) % 256
        return withBody(body)
      }),
    fc.nat({ max: genuine.body.length - 1 }).map((end) => withBody(genuine.body.slice(0, end))),
    fc.uint8Array({ maxLength: 100 }).map(withBody),
    fc.constantFrom(
      withBody(Uint8Array.of(0xef, 0xbb, 0xbf, ...genuine.body)),
      withBody(Uint8Array.of(...genuine.body, 0x0a)),
      withBody(Uint8Array.of(...genuine.body, 0xff)),
      withBody(new Uint8Array()),
    ),
  )
  const covers = signature?.scheme !== 'token' && oracle.entry.name !== 'google-pubsub'
  return fc.oneof(...inHeaders, ...(covers ? [inBody] : []))
}

function isHeaderText(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text) && text.trim() === text
}
