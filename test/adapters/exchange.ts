import { request as httpRequest } from 'node:http'
import type { AdapterFixture } from '@webhook-inbox/testkit'

/** A request in plain values. A list sends the header that many times. */
export interface PlainRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** Not sent with GET and HEAD. */
  readonly body: Uint8Array<ArrayBuffer>
  /** Sends the body without its length, where there is a socket. */
  readonly chunked: boolean
}

/** What all adapters have to answer alike. */
export interface PlainAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
}

const comparedHeaders = ['content-type', 'retry-after', 'allow', 'webhook-inbox-status']

/** Sends a request over a socket, or hands it to an adapter that has none. */
export function exchange(fixture: AdapterFixture, request: PlainRequest): Promise<PlainAnswer> {
  return fixture.fetch === undefined
    ? overSocket(fixture.url, request)
    : byFetch(fixture.fetch, fixture.url, request)
}

function overSocket(url: string, { method, path, headers, body, chunked }: PlainRequest) {
  const bodiless = method === 'GET' || method === 'HEAD'
  return new Promise<PlainAnswer>((resolve, reject) => {
    const lists = Object.entries(headers).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : [...value],
    ])
    const length = bodiless || chunked ? {} : { 'content-length': body.length }
    const outgoing = httpRequest(
      url + path,
      { method, headers: { ...length, ...Object.fromEntries(lists) }, agent: false },
      (incoming) => {
        const chunks: Buffer[] = []
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
        incoming.on('error', reject)
        incoming.on('end', () =>
          resolve({
            status: incoming.statusCode ?? 0,
            headers: Object.fromEntries(
              comparedHeaders.map((name) => [name, incoming.headers[name]?.toString()]),
            ),
            body: Buffer.concat(chunks).toString('latin1'),
          }),
        )
      },
    )
    outgoing.on('error', reject)
    // Without a length, and not all at once, Node sends chunks.
    if (chunked) outgoing.flushHeaders()
    outgoing.end(bodiless ? undefined : body)
  })
}

async function byFetch(
  handle: (request: Request) => Promise<Response>,
  origin: string,
  { method, path, headers, body }: PlainRequest,
): Promise<PlainAnswer> {
  const list = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    for (const one of typeof value === 'string' ? [value] : value) list.append(name, one)
  }
  const content = method === 'GET' || method === 'HEAD' ? {} : { body }
  const response = await handle(new Request(origin + path, { method, headers: list, ...content }))
  return {
    status: response.status,
    headers: Object.fromEntries(
      comparedHeaders.map((name) => [name, response.headers.get(name) ?? undefined]),
    ),
    body: Buffer.from(await response.arrayBuffer()).toString('latin1'),
  }
}
