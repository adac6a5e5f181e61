import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import {
  type DeliveryKey,
  type DeliveryRecord,
  memoryStore,
  type Observer,
  type ObserverEvent,
  type Store,
} from '@webhook-inbox/core'

export const secret = "It's a Secret to Everybody"

let deliveries = 0

export interface SignedRequest {
  readonly id: string
  readonly key: DeliveryKey
  readonly headers: Record<string, string>
  readonly body: Buffer
}

/** A signed GitHub delivery with an id of its own. */
export function delivery(
  body: string | Uint8Array = '{"zen":"Keep it logically awesome."}',
  headers: Readonly<Record<string, string>> = {},
  signedWith: string = secret,
): SignedRequest {
  deliveries += 1
  const bytes = Buffer.from(body)
  const id = headers['x-github-delivery'] ?? `delivery-${deliveries}`
  return {
    id,
    key: { provider: 'github', endpoint: '292430182', deliveryId: id },
    body: bytes,
    headers: {
      host: 'hooks.example.test',
      'content-type': 'application/json',
      'content-length': String(bytes.length),
      'x-github-event': 'push',
      'x-github-delivery': id,
      'x-github-hook-id': '292430182',
      'x-hub-signature-256': `sha256=${createHmac('sha256', signedWith).update(bytes).digest('hex')}`,
      ...headers,
    },
  }
}

/** The head of a request as it goes over the wire. */
export function headOf(
  { headers }: Pick<SignedRequest, 'headers'>,
  target = '/webhooks/github',
  method = 'POST',
): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** The whole request as it goes over the wire. */
export function bytesOf(request: SignedRequest, target?: string, method?: string): Buffer {
  return Buffer.concat([Buffer.from(headOf(request, target, method)), request.body])
}

export interface WireResponse {
  readonly status: number
  readonly message: string
  /** Lower-case names to values, in their order. */
  readonly headers: readonly (readonly [string, string])[]
  header(name: string): string | undefined
  /** With the transfer coding taken off. */
  readonly body: Buffer
  readonly text: string
  /** By name, from the end of a chunked body. */
  readonly trailers: Readonly<Record<string, string>>
}

/** A connection on which every byte is seen. */
export interface Wire {
  readonly socket: Socket
  send(bytes: string | Uint8Array): Promise<void>
  /** Everything that came so far. */
  received(): Buffer
  /** The next whole response. Rejects when the connection closes before it is complete. */
  response(): Promise<WireResponse>
  /** Resolves when the other side has closed. */
  readonly closed: Promise<void>
  destroy(): void
}

export async function openWire(port: number): Promise<Wire> {
  const socket = connect({ port, host: '127.0.0.1' })
  await once(socket, 'connect')
  socket.setNoDelay(true)
  let all = Buffer.alloc(0)
  let from = 0
  let isClosed = false
  let wake: (() => void)[] = []
  const changed = (): void => {
    const sleepers = wake
    wake = []
    for (const sleeper of sleepers) sleeper()
  }
  socket.on('data', (chunk) => {
    all = Buffer.concat([all, chunk])
    changed()
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      isClosed = true
      resolve()
      changed()
    })
  })
  return {
    socket,
    closed,
    send: (bytes) =>
      new Promise((resolve, reject) =>
        socket.write(bytes, (error) => (error ? reject(error) : resolve())),
      ),
    received: () => all,
    async response() {
      for (;;) {
        const parsed = parseResponse(all.subarray(from), isClosed)
        if (parsed !== undefined) {
          from += parsed.length
          return parsed.response
        }
        if (isClosed) throw new Error(`closed after: ${all.subarray(from).toString('latin1')}`)
        await new Promise<void>((resolve) => wake.push(resolve))
      }
    },
    destroy: () => void socket.destroy(),
  }
}

function parseResponse(
  bytes: Buffer,
  isClosed: boolean,
): { readonly response: WireResponse; readonly length: number } | undefined {
  const headEnd = bytes.indexOf('\r\n\r\n')
  if (headEnd === -1) return undefined
  const [first = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n')
  const status = Number(first.split(' ')[1])
  const headers = lines.map(splitHeader)
  const header = (name: string): string | undefined => headers.find(([key]) => key === name)?.[1]
  const start = headEnd + 4
  const finish = (body: Buffer, length: number, trailers: Record<string, string> = {}) => ({
    length,
    response: {
      status,
      message: first.split(' ').slice(2).join(' '),
      headers,
      header,
      body,
      text: body.toString('utf8'),
      trailers,
    },
  })
  if (status < 200 || status === 204 || status === 304) return finish(Buffer.alloc(0), start)
  const length = header('content-length')
  if (length !== undefined) {
    const end = start + Number(length)
    return bytes.length < end ? undefined : finish(bytes.subarray(start, end), end)
  }
  if (header('transfer-encoding') !== 'chunked')
    return isClosed ? finish(bytes.subarray(start), bytes.length) : undefined
  const chunks: Buffer[] = []
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16)
    const dataEnd = lineEnd + 2 + size
    if (size > 0) {
      if (bytes.length < dataEnd + 2) return undefined
      chunks.push(bytes.subarray(lineEnd + 2, dataEnd))
      at = dataEnd + 2
      continue
    }
    const rest = bytes.subarray(lineEnd + 2)
    if (rest.subarray(0, 2).toString() === '\r\n') return finish(Buffer.concat(chunks), lineEnd + 4)
    const trailerEnd = rest.indexOf('\r\n\r\n')
    if (trailerEnd === -1) return undefined
    const trailers = rest.subarray(0, trailerEnd).toString('latin1').split('\r\n').map(splitHeader)
    return finish(Buffer.concat(chunks), lineEnd + 2 + trailerEnd + 4, Object.fromEntries(trailers))
  }
}

function splitHeader(line: string): readonly [string, string] {
  const cut = line.indexOf(':')
  return [line.slice(0, cut).toLowerCase(), line.slice(cut + 1).trim()]
}

export interface TestServer {
  readonly server: Server
  readonly port: number
  wire(): Promise<Wire>
  /** Sends one request on a connection of its own and reads the answer. */
  send(request: SignedRequest, target?: string, method?: string): Promise<WireResponse>
  close(): Promise<void>
}

/** A listener on a free port of the loopback interface. */
export async function serve(listener: RequestListener): Promise<TestServer> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const wires = new Set<Wire>()
  const wire = async (): Promise<Wire> => {
    const opened = await openWire(port)
    wires.add(opened)
    return opened
  }
  return {
    server,
    port,
    wire,
    async send(request, target, method) {
      const opened = await wire()
      await opened.send(bytesOf(request, target, method))
      const response = await opened.response()
      opened.destroy()
      return response
    },
    async close() {
      for (const opened of wires) opened.destroy()
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

export interface Gate {
  readonly opened: Promise<void>
  open(): void
}

/** Something that a test lets happen. */
export function gate(): Gate {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open: () => open() }
}

export interface WatchedStore extends Store {
  /** Names of the operations, in the order in which they were called. */
  readonly calls: string[]
  /** Holds the settlements back until the returned gate is opened. */
  holdSettlements(): Gate
  /** Resolves when a settlement is under way: once `complete` or `fail` was called `count` times in all. */
  settling(count?: number): Promise<void>
  /** Resolves when a claim is settled, with what became of it. */
  settled(key: DeliveryKey): Promise<DeliveryRecord>
}

/** A memory store that tells what is asked of it, and waits where a test wants it to. */
export function watchedStore(): WatchedStore {
  const store = memoryStore()
  const calls: string[] = []
  let held: Gate | undefined
  let wake: (() => void)[] = []
  const changed = (): void => {
    const sleepers = wake
    wake = []
    for (const sleeper of sleepers) sleeper()
  }
  const settlements = (): number =>
    calls.filter((name) => name === 'complete' || name === 'fail').length
  const change = (): Promise<void> => new Promise((resolve) => wake.push(resolve))
  const settle = async <Result>(name: string, run: () => Promise<Result>): Promise<Result> => {
    calls.push(name)
    changed()
    await held?.opened
    const result = await run()
    changed()
    return result
  }
  return {
    ...store,
    calls,
    claim(entries) {
      calls.push('claim')
      return store.claim(entries)
    },
    complete: (hold, options, tx) => settle('complete', () => store.complete(hold, options, tx)),
    fail: (hold, options, tx) => settle('fail', () => store.fail(hold, options, tx)),
    holdSettlements() {
      held = gate()
      return held
    },
    async settling(count = 1) {
      while (settlements() < count) await change()
    },
    async settled(key) {
      for (;;) {
        const waiting = change()
        const record = await store.get(key)
        if (record !== undefined && record.state !== 'processing') return record
        await waiting
      }
    },
  }
}

export interface Recorder {
  readonly events: ObserverEvent[]
  readonly observer: Observer
  types(): readonly string[]
}

/** An observer that keeps what it hears. */
export function recorder(): Recorder {
  const events: ObserverEvent[] = []
  return {
    events,
    observer: (event) => void events.push(event),
    types: () => events.map(({ type }) => type),
  }
}
