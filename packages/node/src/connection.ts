/** The connection under a held response: kept open while the answer waits for its settlement. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'

interface Guard {
  holders: number
  /** The destruction that somebody asked for meanwhile. */
  wanted: (() => void) | undefined
  readonly restore: () => void
}

const guards = new WeakMap<Socket, Guard>()

/** The connection of a request; undefined for the plain objects that serverless adapters and injectors put there. */
export function socketOf(req: IncomingMessage): Socket | undefined {
  return req.socket instanceof Duplex ? req.socket : undefined
}

/**
 * Puts off the destruction of the connection until the returned function is called and the answer is out. Express
 * destroys the socket of a handler that answers and then throws; unheld, such an answer is with the kernel by then.
 */
export function keepConnectionOpen(req: IncomingMessage, res: ServerResponse): () => void {
  const socket = socketOf(req)
  if (socket === undefined) return () => {}
  const guard = guards.get(socket) ?? guardOf(socket)
  guard.holders += 1
  return () => {
    guard.holders -= 1
    if (guard.holders > 0) return
    guards.delete(socket)
    guard.restore()
    const { wanted } = guard
    if (wanted === undefined) return
    if (res.writableFinished || !socket.writable) wanted()
    else res.once('finish', wanted)
  }
}

/** Destroys the connection of a response now, whoever keeps it open. */
export function breakOff(req: IncomingMessage, res: ServerResponse): void {
  const socket = socketOf(req)
  if (socket !== undefined) guards.get(socket)?.restore()
  res.destroy()
}

function guardOf(socket: Socket): Guard {
  const before = Object.getOwnPropertyDescriptor(socket, 'destroy')
  const { destroy } = socket
  const guard: Guard = {
    holders: 0,
    wanted: undefined,
    restore() {
      if (socket.destroy !== putOff) return
      if (before === undefined) Reflect.deleteProperty(socket, 'destroy')
      else Object.defineProperty(socket, 'destroy', before)
    },
  }
  function putOff(error?: Error): Socket {
    guard.wanted ??= () => void Reflect.apply(destroy, socket, error === undefined ? [] : [error])
    return socket
  }
  socket.destroy = putOff
  guards.set(socket, guard)
  return guard
}
