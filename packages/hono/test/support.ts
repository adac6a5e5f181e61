import { createHmac } from 'node:crypto'
import { type AddressInfo, createConnection } from 'node:net'
import { serve } from '@hono/node-server'
import type { Hono } from 'hono'
import { onTestFinished } from 'vitest'

export { gate, recorder, withOperations } from '../../core/test/support.ts'

export const secret = "It's a Secret to Everybody"

let lastId = 0

/** A signed GitHub request; every call is another delivery unless the id is given. */
export function signed(
  body: string | Uint8Array<ArrayBuffer> = '{"zen":"Keep it simple ☕"}',
  headers: Readonly<Record<string, string>> = {},
): {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body: Uint8Array<ArrayBuffer>
} {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  lastId += 1
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': `delivery-${lastId}`,
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`,
      ...headers,
    },
    body: bytes,
  }
}

/** Serves the app on a free port until the test ends. */
export async function listen(app: Hono): Promise<{ readonly port: number; readonly url: string }> {
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' })
  await new Promise<void>((resolve) => server.on('listening', () => resolve()))
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        if ('closeAllConnections' in server) server.closeAllConnections()
      }),
  )
  const { port }: AddressInfo = addressOf(server.address())
  return { port, url: `http://127.0.0.1:${port}` }
}

function addressOf(address: AddressInfo | string | null): AddressInfo {
  if (typeof address === 'object' && address !== null) return address
  throw new TypeError('The server has no address.')
}

/** A raw connection: what was sent and what came, byte by byte. */
export function connect(port: number): {
  send(text: string | Uint8Array): void
  readonly received: () => string
  /** Resolves when the text so far holds `part`. */
  until(part: string): Promise<string>
  readonly closed: Promise<void>
  destroy(): void
} {
  const socket = createConnection({ port, host: '127.0.0.1' })
  let text = ''
  const waiting = new Set<() => void>()
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1')
    for (const check of waiting) check()
  })
  socket.on('error', () => {})
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  onTestFinished(() => void socket.destroy())
  return {
    send: (data) => void socket.write(data),
    received: () => text,
    until: (part) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (!text.includes(part)) return
          waiting.delete(check)
          resolve(text)
        }
        waiting.add(check)
        check()
      }),
    closed,
    destroy: () => void socket.destroy(),
  }
}

/** A signed request as it goes over the wire. */
export function wire(
  path: string,
  { method, headers, body }: ReturnType<typeof signed>,
  extra: Readonly<Record<string, string>> = {},
): Uint8Array {
  const lines = Object.entries({
    host: 'localhost',
    'content-length': String(body.length),
    ...headers,
    ...extra,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), body])
}
