/** A TCP proxy that breaks connections in the ways networks do. */
import { createServer, type Socket, connect as tcpConnect } from 'node:net'

export interface TcpProxy {
  readonly host: string
  readonly port: number
  /** Holds every piece back for this long, in both directions. 0 ends it. */
  delay(ms: number): void
  /** Ends all connections at once, as a reset; new ones are taken. */
  cut(): void
  /** Ends all connections and takes no new ones until `accept`. */
  refuse(): void
  /** From now on nothing goes in this direction, and nobody is told. */
  drop(direction: 'requests' | 'replies'): void
  /** Everything flows again, and new connections are taken. What was dropped stays lost. */
  accept(): void
  /**
   * Swallows what the server says from now on and cuts the connection on which it says it. Resolves when that has
   * happened: the server has then done the work, and the client has not heard of it.
   */
  swallowReply(): Promise<void>
  /** Bytes that were dropped so far. */
  droppedBytes(): number
  /** Connections that are open now. */
  connections(): number
  close(): Promise<void>
}

/** Starts a proxy on a free port of 127.0.0.1 before a server. */
export async function startProxy(target: {
  readonly host: string
  readonly port: number
}): Promise<TcpProxy> {
  const pairs = new Set<{ readonly client: Socket; readonly server: Socket }>()
  let delayMs = 0
  let droppedBytes = 0
  let refusing = false
  let dropped: 'requests' | 'replies' | undefined
  let onSwallowed: (() => void) | undefined

  const listener = createServer((client) => {
    if (refusing) {
      client.resetAndDestroy()
      return
    }
    const server = tcpConnect(target.port, target.host)
    const pair = { client, server }
    pairs.add(pair)
    client.setNoDelay(true)
    server.setNoDelay(true)
    const end = () => {
      pairs.delete(pair)
      client.resetAndDestroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      socket.on('error', end)
      socket.on('close', end)
    }
    const toServer = inOrder((piece) => server.write(piece))
    const toClient = inOrder((piece) => client.write(piece))
    client.on('data', (piece) => {
      if (dropped === 'requests') droppedBytes += piece.length
      else toServer(piece)
    })
    server.on('data', (piece) => {
      if (onSwallowed !== undefined) {
        const tell = onSwallowed
        onSwallowed = undefined
        end()
        tell()
      } else if (dropped === 'replies') {
        droppedBytes += piece.length
      } else {
        toClient(piece)
      }
    })
  })

  // Pieces stay in order when the delay changes while some are held back.
  function inOrder(send: (piece: Buffer) => void): (piece: Buffer) => void {
    let lastAtMs = 0
    return (piece) => {
      const nowMs = performance.now()
      const atMs = Math.max(nowMs + delayMs, lastAtMs)
      if (atMs <= nowMs) return send(piece)
      lastAtMs = atMs + 0.01
      setTimeout(send, Math.ceil(atMs - nowMs), piece)
    }
  }

  function cut(): void {
    for (const { client, server } of pairs) {
      client.resetAndDestroy()
      server.destroy()
    }
    pairs.clear()
  }

  await new Promise<void>((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(0, '127.0.0.1', resolve)
  })
  const address = listener.address()
  if (typeof address !== 'object' || address === null) throw new Error('The proxy has no port.')

  return {
    host: '127.0.0.1',
    port: address.port,
    delay(ms) {
      delayMs = ms
    },
    cut,
    refuse() {
      refusing = true
      cut()
    },
    drop(direction) {
      dropped = direction
    },
    accept() {
      refusing = false
      dropped = undefined
    },
    swallowReply: () =>
      new Promise((resolve) => {
        onSwallowed = resolve
      }),
    droppedBytes: () => droppedBytes,
    connections: () => pairs.size,
    async close() {
      cut()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}
