/** Why a response closed before its handler ended it, and whether the handler can still end it. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { socketOf } from './connection.ts'

/** How long a handler whose piped answer broke with the connection may take to answer by itself. */
const ownAnswerMs = 100

export interface HangUpEvents {
  /** The handler destroyed the response, or the socket under it. */
  broken(): void
  /** The connection is gone; the handler goes on and may still end the response. */
  gone(): void
  /** The connection is gone, and with it what was piped into the response: nobody will end it any more. */
  stranded(source: Readable): void
}

export interface HangUpWatch {
  /** Called when the handler destroys the response. */
  destroyed(): void
  stop(): void
}

export function watchHangUp(
  req: IncomingMessage,
  res: ServerResponse,
  events: HangUpEvents,
): HangUpWatch {
  const socket = socketOf(req)
  const timeout = socket === undefined ? undefined : timeoutOf(socket)
  const sources = new Set<Readable>()
  let byHandler = false
  let isGone = false
  let timer: ReturnType<typeof setTimeout> | undefined

  function onClose(): void {
    isGone = true
    if (byHandler || isBrokenHere()) events.broken()
    else events.gone()
  }

  // The sender ends the stream or breaks the connection; the server drops it after a timeout or when it shuts down.
  // What is left is the handler, or Express after an error of the handler.
  function isBrokenHere(): boolean {
    if (socket === undefined || socket.readableEnded || isConnectionError(socket.errored))
      return false
    if (socket.errored) return true
    const server: unknown = Reflect.get(socket, 'server')
    const shutsDown =
      typeof server === 'object' && server !== null && Reflect.get(server, 'listening') === false
    return timeout?.passed !== true && !shutsDown
  }

  function onPipe(source: Readable): void {
    sources.add(source)
    source.once('close', () => drop(source))
  }

  function drop(source: Readable): void {
    const known = sources.delete(source)
    if (!known || !isGone || sources.size > 0 || source.readableEnded) return
    timer = setTimeout(() => events.stranded(source), ownAnswerMs)
  }

  res.on('close', onClose)
  res.on('pipe', onPipe)
  res.on('unpipe', drop)
  if (res.destroyed || socket?.destroyed) {
    isGone = true
    events.gone()
  }
  return {
    destroyed() {
      byHandler = true
    },
    stop() {
      clearTimeout(timer)
      res.off('close', onClose)
      res.off('pipe', onPipe)
      res.off('unpipe', drop)
    },
  }
}

const timeouts = new WeakMap<Socket, { passed: boolean }>()

// One listener for each socket: a pipeline of requests would pile them up.
function timeoutOf(socket: Socket): { readonly passed: boolean } {
  const known = timeouts.get(socket)
  if (known !== undefined) return known
  const timeout = { passed: false }
  timeouts.set(socket, timeout)
  socket.on('timeout', () => {
    timeout.passed = true
  })
  return timeout
}

// Codes of the operating system, the HTTP parser and TLS: none of them is thrown by a handler.
function isConnectionError(error: unknown): boolean {
  if (typeof error !== 'object' || error === null || !('code' in error)) return false
  return typeof error.code === 'string' && /^(E[A-Z0-9]+$|HPE_|ERR_HTTP_|ERR_SSL_)/.test(error.code)
}
