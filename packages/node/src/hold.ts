/**
 * Holds a response, head included, until its delivery is settled: a sender that saw 2xx gets no second run.
 *
 * While it is held the response says about itself what it would say if it were sent. Node looks at `finished` and at
 * the rendered head (`_header`) before it writes: with both in place every check and every error of a late call is
 * Node's own.
 */
import {
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  ServerResponse,
  STATUS_CODES,
} from 'node:http'
import {
  type Answer,
  type ClaimedReceipt,
  type Settlement,
  statusHeader,
} from '@webhook-inbox/core'
import { writeAnswer } from './answer.ts'
import { breakOff, keepConnectionOpen, socketOf } from './connection.ts'
import { watchHangUp } from './hang-up.ts'

/** The default of `maxHeldResponseBytes`: 1 MiB. */
export const defaultMaxHeldResponseBytes: number = 1024 * 1024

export interface HoldOptions {
  /** What the answer settles. */
  readonly receipt: Pick<ClaimedReceipt, 'settle' | 'onTimeout' | 'reportUnheld'>
  /** Above this many bytes the response flows and only its last chunk waits. @default 1 MiB */
  readonly maxHeldResponseBytes?: number
}

export interface HeldResponse {
  /** Tells what the handler threw, where the framework shows it: refines a failure into permanent or retryable. */
  noteError(error: unknown): void
}

interface Head {
  readonly status: number
  readonly message: string
  /** By `writeHead` or `flushHeaders`, before the first byte of the body was known. */
  readonly explicit: boolean
}

interface Write {
  readonly chunk: string | Uint8Array
  readonly encoding: BufferEncoding | undefined
}

type Method = (...args: never[]) => unknown

const nodeMethods = ServerResponse.prototype
type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[]

/**
 * Holds `res` from now until the claim is settled by the status of the answer that the handler gives, then sends
 * that answer, or the settlement's in its place. Restores the methods it replaces.
 */
export function holdResponse(
  req: IncomingMessage,
  res: ServerResponse,
  { receipt, maxHeldResponseBytes = defaultMaxHeldResponseBytes }: HoldOptions,
): HeldResponse {
  const { writeHead, write, end, flushHeaders, destroy } = res
  const earlier = { writeHead, write, end }
  const headersBefore = res.getHeaders()
  let head: Head | undefined
  let isImplied = false
  let writes: Write[] = []
  let heldBytes = 0
  /** Nobody is there to read any more. */
  let gone = false
  /** The real head is out. */
  let flowing = false
  let ended = false
  /** Unheld, the response would be closed by now: Node makes no event of what fails on it. */
  let isPast = false
  let released = false
  let thrown: { readonly error: unknown } | undefined

  const replaced = replaceProperties(res, {
    writeHead: { value: onWriteHead },
    write: { value: onWrite },
    end: { value: onEnd },
    flushHeaders: { value: onFlushHeaders },
    destroy: { value: onDestroy },
    headersSent: { get: () => head !== undefined },
    finished: { get: () => ended },
    writableEnded: { get: () => ended },
    writableFinished: { get: () => false },
    // Once bytes flow, Node tells by this length whether it is time for 'drain'.
    writableLength: {
      get: () =>
        (flowing ? 0 : heldBytes) + Reflect.get(ServerResponse.prototype, 'writableLength', res),
    },
  })
  const watch = watchHangUp(req, res, {
    broken() {
      gone = true
      if (!ended) settle(500, undefined)
    },
    gone() {
      gone = true
    },
    stranded({ errored }) {
      const failed = errored !== null && !isPrematureClose(errored)
      if (!ended) settle(failed ? 500 : (head?.status ?? res.statusCode), undefined)
    },
  })
  receipt.onTimeout((settlement) => {
    if (!ended) release(settlement, undefined)
  })

  function real(method: Method, args: readonly unknown[]): unknown {
    return Reflect.apply(method, res, args)
  }

  // What comes after the answer fails as Node says. What has wrapped the response before us would take it for the
  // answer, which it has not seen yet.
  function late(name: 'writeHead' | 'write' | 'end', args: readonly unknown[]): unknown {
    if (released || !(res instanceof ServerResponse)) return real(earlier[name], withoutTail(args))
    const target = isPast && name !== 'writeHead' && isChunk(args[0]) ? closedResponse(req) : res
    return Reflect.apply(nodeMethods[name], target, withoutTail(args))
  }

  // As in Node, the first write goes through `writeHead`, where what has wrapped it since sets its headers.
  function implyHead(): void {
    if (head !== undefined) return
    isImplied = true
    try {
      res.writeHead(res.statusCode)
    } finally {
      isImplied = false
    }
    sendHead(false)
  }

  function sendHead(explicit: boolean): void {
    if (head !== undefined) return
    // Node's own checks and errors, on a response that is never sent.
    const probe = new ServerResponse(req)
    probe.writeHead(res.statusCode, res.statusMessage)
    head = { status: probe.statusCode, message: probe.statusMessage, explicit }
    res.statusMessage = probe.statusMessage
    Reflect.set(res, '_header', `HTTP/1.1 ${head.status} ${head.message}\r\n\r\n`)
  }

  function onWriteHead(status: number, second?: string | Headers, third?: Headers): ServerResponse {
    if (released || head !== undefined) {
      late('writeHead', [status, second, third])
      return res
    }
    Reflect.apply(ServerResponse.prototype.writeHead, new ServerResponse(req), [
      status,
      second,
      third,
    ])
    applyHeaders(res, third ?? (typeof second === 'string' ? undefined : second))
    res.statusCode = Math.trunc(status)
    if (typeof second === 'string') res.statusMessage = second
    sendHead(!isImplied)
    return res
  }

  function onFlushHeaders(): void {
    if (released || flowing) real(flushHeaders, [])
    else if (head === undefined) res.writeHead(res.statusCode)
  }

  function onWrite(...args: unknown[]): boolean {
    if (released || ended) return late('write', args) !== false
    const { chunk, encoding, callback } = readArguments(args)
    if (!isChunk(chunk)) return new ServerResponse(req).write(chunk)
    implyHead()
    // A handler may wait for this before it goes on to end the response.
    if (callback !== undefined) process.nextTick(callback)
    const size = sizeOf(chunk, encoding)
    if (gone || size === 0) return true
    // Copied: a handler that was told that its chunk is written may use the buffer again.
    writes.push({ chunk: typeof chunk === 'string' ? chunk : Buffer.from(chunk), encoding })
    heldBytes += size
    return heldBytes > maxHeldResponseBytes ? flow() : true
  }

  /** Sends all but the last chunk before the delivery is settled. */
  function flow(): boolean {
    const last = writes.pop()
    let wantsMore = true
    if (writes.length > 0) {
      if (!flowing) receipt.reportUnheld()
      wantsMore = sendWrites({ state: 'processing' })
    }
    writes = last === undefined ? [] : [last]
    return wantsMore || gone
  }

  function onEnd(...args: unknown[]): ServerResponse {
    if (released || ended) {
      late('end', args)
      return res
    }
    const { chunk, encoding, callback } = readArguments(args)
    if (chunk && !isChunk(chunk)) new ServerResponse(req).end(chunk)
    implyHead()
    ended = true
    setImmediate(() => {
      isPast = true
    })
    const letGo = keepConnectionOpen(req, res)
    const last = chunk ? [chunk, encoding, callback] : callback === undefined ? [] : [callback]
    settle(head?.status ?? res.statusCode, (settlement) => {
      sendWrites(settlement)
      real(end, withoutTail(last))
    }).then(letGo)
    return res
  }

  function onDestroy(error?: Error): ServerResponse {
    if (ended && !released) {
      // Unheld, the answer would be with the kernel by now.
      socketOf(req)?.destroy(error)
      return res
    }
    watch.destroyed()
    // The socket first: Bun answers 200 on one that outlives its response.
    if (req.httpVersionMajor < 2 && res.socket !== null && res.socket === socketOf(req))
      res.socket.destroy(error)
    real(destroy, error === undefined ? [] : [error])
    return res
  }

  function sendWrites({ state, headers = {} }: Pick<Settlement, 'state' | 'headers'>): boolean {
    if (!flowing && head !== undefined) {
      flowing = true
      Reflect.set(res, '_header', null)
      // What has wrapped this since has seen the head already.
      replaced.restore('writeHead')
      // Bun asks this before it writes a head.
      replaced.restore('headersSent')
      res.statusCode = head.status
      res.statusMessage = head.message
      res.setHeader(statusHeader, state)
      for (const [name, value] of Object.entries(headers)) res.setHeader(name, value)
      if (head.explicit) real(writeHead, [head.status])
    }
    let wantsMore = true
    for (const { chunk, encoding } of writes)
      wantsMore = real(write, withoutTail([chunk, encoding])) !== false
    writes = []
    return wantsMore
  }

  async function settle(
    status: number,
    send: ((settlement: Settlement) => void) | undefined,
  ): Promise<void> {
    const end = thrown === undefined ? { status } : { status, error: thrown.error }
    release(await receipt.settle(end), send)
  }

  function release(
    settlement: Settlement,
    send: ((settlement: Settlement) => void) | undefined,
  ): void {
    if (released) return
    released = true
    watch.stop()
    replaced.restore()
    try {
      const { replace } = settlement
      if (replace === undefined) send?.(settlement)
      // The head is out: an answer that breaks off is the only other way to say that it does not hold.
      else if (flowing) breakOff(req, res)
      else replaceAnswer(replace)
    } catch (error) {
      res.destroy(error instanceof Error ? error : undefined)
    }
  }

  function replaceAnswer(answer: Answer): void {
    Reflect.set(res, '_header', null)
    for (const name of res.getHeaderNames()) {
      // Removing one of these tells Node never to send it.
      if (name !== 'connection' && name !== 'date') res.removeHeader(name)
    }
    for (const [name, value] of Object.entries(headersBefore)) {
      if (value !== undefined) res.setHeader(name, value)
    }
    res.statusMessage = STATUS_CODES[answer.status] ?? ''
    // The handler still runs: Express destroys the socket when it fails late, and another request could be on it.
    if (!ended && req.httpVersionMajor < 2) res.setHeader('connection', 'close')
    writeAnswer(req, res, answer)
  }

  return {
    noteError(error) {
      thrown = { error }
    },
  }
}

function closedResponse(req: IncomingMessage): ServerResponse {
  return Object.assign(new ServerResponse(req), { finished: true, destroyed: true })
}

/** @returns how to put back what was there: one property in any case, or all that nobody has wrapped since */
function replaceProperties(
  target: object,
  replacements: Readonly<Record<string, PropertyDescriptor>>,
): { restore(name?: string): void } {
  const before = Object.keys(replacements).map(
    (name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const,
  )
  for (const [name, replacement] of Object.entries(replacements)) {
    const kind = 'value' in replacement ? { writable: true } : {}
    Object.defineProperty(target, name, {
      configurable: true,
      enumerable: true,
      ...kind,
      ...replacement,
    })
  }
  return {
    restore(only) {
      for (const [name, descriptor] of before) {
        const now = Object.getOwnPropertyDescriptor(target, name)
        const isOurs = now?.value === replacements[name]?.value
        if (only === undefined ? !isOurs : name !== only) continue
        if (descriptor === undefined) Reflect.deleteProperty(target, name)
        else Object.defineProperty(target, name, descriptor)
      }
    },
  }
}

// As Node does it: later values replace those that are set, repeated names of a list stay apart.
function applyHeaders(res: ServerResponse, headers: Headers | undefined): void {
  if (headers === undefined || headers === null) return
  if (!Array.isArray(headers)) {
    for (const [name, value] of Object.entries(headers)) {
      if (name !== '' && value !== undefined) res.setHeader(name, value)
    }
    return
  }
  const pairs = pairsOf(headers)
  for (const [name] of pairs) res.removeHeader(name)
  for (const [name, value] of pairs) res.appendHeader(name, value)
}

function pairsOf(list: readonly OutgoingHttpHeader[]): (readonly [string, string | string[]])[] {
  const flat = list.flatMap((item) =>
    Array.isArray(item) && Array.isArray(list[0]) ? item : [item],
  )
  const pairs: (readonly [string, string | string[]])[] = []
  for (let index = 0; index + 1 < flat.length; index += 2) {
    const value = flat[index + 1]
    pairs.push([String(flat[index]), Array.isArray(value) ? value : String(value)])
  }
  return pairs
}

/** The three ways to call `write` and `end`. */
function readArguments([chunk, encoding, callback]: readonly unknown[]): {
  readonly chunk: unknown
  readonly encoding: BufferEncoding | undefined
  readonly callback: (() => void) | undefined
} {
  if (isFunction(chunk)) return { chunk: undefined, encoding: undefined, callback: chunk }
  if (isFunction(encoding)) return { chunk, encoding: undefined, callback: encoding }
  return {
    chunk,
    encoding: typeof encoding === 'string' && Buffer.isEncoding(encoding) ? encoding : undefined,
    callback: isFunction(callback) ? callback : undefined,
  }
}

function isFunction(value: unknown): value is () => void {
  return typeof value === 'function'
}

function isChunk(chunk: unknown): chunk is string | Uint8Array {
  return typeof chunk === 'string' || chunk instanceof Uint8Array
}

function sizeOf(chunk: string | Uint8Array, encoding: BufferEncoding | undefined): number {
  return typeof chunk === 'string' ? Buffer.byteLength(chunk, encoding) : chunk.byteLength
}

// Wrapped methods look at how many arguments they get.
function withoutTail(args: readonly unknown[]): readonly unknown[] {
  return args.slice(0, args.findLastIndex((value) => value !== undefined) + 1)
}

function isPrematureClose(error: Error): boolean {
  return Reflect.get(error, 'code') === 'ERR_STREAM_PREMATURE_CLOSE' || error.name === 'AbortError'
}
