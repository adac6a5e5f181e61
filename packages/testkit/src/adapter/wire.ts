import type { Socket } from 'node:net'
import { type AdapterGuarantee, buildRequest, keyOf, type Site } from './harness.ts'
import { createGate } from './observed-store.ts'

/** What can only be seen on a real socket. */
export const wireGuarantees = {
  async A41({ serve, expect }) {
    const gate = createGate()
    const site = await serve({ policy: { storeTimeoutMs: 60_000 } })
    site.observed.intercept('complete', async (go) => {
      await gate.opened
      return go()
    })
    const { socket, received, ended } = await connect(site.url)
    const { head, body } = await rawRequest(site, '{"wire":true}')
    socket.write(head)
    socket.write(body)
    await site.observed.called('complete')
    // Copies on connections of their own make the whole way meanwhile.
    for (let copy = 0; copy < 10; copy++) expect((await site.send()).status).toEqual(202)
    expect(received()).toEqual('')
    gate.open()
    await ended
    expect(received().startsWith('HTTP/1.1 200 ')).toEqual(true)
    expect(/webhook-inbox-status: completed/i.test(received())).toEqual(true)
  },

  async A49({ serve, expect }) {
    const gate = createGate()
    const started = createGate()
    const site = await serve({
      async run() {
        started.open()
        await gate.opened
      },
    })
    const { socket } = await connect(site.url)
    const { head, body } = await rawRequest(site, '{"wire":true}')
    socket.write(head)
    socket.write(body)
    await started.opened
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.destroy()
    await closed
    expect((await site.send()).status).toEqual(202)
    gate.open()
    await site.event('completed')
    expect((await site.send()).status).toEqual(200)
    expect(site.runs.length).toEqual(1)
  },

  async A50({ serve, expect }) {
    const site = await serve()
    const text = '{"t":"é☕👩‍🚀"}'
    const { body: bytes } = await rawRequest(site, text)
    for (let cut = 0; cut <= bytes.length; cut++) {
      const { head, body } = await rawRequest(site, text, `cut-${cut}`)
      const { socket, received, ended } = await connect(site.url)
      socket.setNoDelay(true)
      await write(socket, head)
      await write(socket, body.subarray(0, cut))
      await write(socket, body.subarray(cut))
      await ended
      expect({ cut, status: received().slice(0, 12) }).toEqual({ cut, status: 'HTTP/1.1 200' })
    }
    expect(site.runs.length).toEqual(bytes.length + 1)
    for (const webhook of site.runs) {
      expect(new TextDecoder().decode(webhook.rawBody)).toEqual(text)
      expect(webhook.payload).toEqual(JSON.parse(text))
    }
  },

  async A51({ serve, expect }) {
    const site = await serve()
    const { head, body } = await rawRequest(site, '{"wire":true}')
    for (const cut of [0, 1, body.length - 1]) {
      const { socket } = await connect(site.url)
      await write(socket, head)
      await write(socket, body.subarray(0, cut))
      const closed = new Promise((resolve) => socket.once('close', resolve))
      socket.destroy()
      await closed
    }
    // What the server makes of it is over when it has served a later request.
    expect((await site.send({ id: 'after' })).state).toEqual('completed')
    expect(await site.observed.store.get(keyOf())).toEqual(undefined)
    expect(site.runs.map(({ id }) => id)).toEqual(['after'])
  },
} as const satisfies Record<string, AdapterGuarantee>

interface Connection {
  readonly socket: Socket
  /** What has come so far. */
  received(): string
  /** The server has closed the connection. */
  readonly ended: Promise<void>
}

async function connect(url: string): Promise<Connection> {
  // Imported here: runtimes without sockets can load the kit.
  const { connect: open } = await import('node:net')
  const { hostname, port } = new URL(url)
  const socket = open({ host: hostname, port: Number(port) })
  let text = ''
  socket.setEncoding('utf8')
  socket.on('data', (chunk) => {
    text += String(chunk)
  })
  const ended = new Promise<void>((resolve) => socket.once('close', () => resolve()))
  // A reset ends the connection too; the test looks at what came before.
  socket.on('error', () => {})
  await new Promise<void>((resolve) => socket.once('connect', resolve))
  return { socket, received: () => text, ended }
}

async function rawRequest(
  site: Site,
  body: string,
  id?: string,
): Promise<{ readonly head: string; readonly body: Uint8Array }> {
  const request = await buildRequest(site.url, { body, ...(id === undefined ? {} : { id }) })
  const bytes = new Uint8Array(await request.arrayBuffer())
  const { host, pathname } = new URL(request.url)
  const lines = [
    `POST ${pathname} HTTP/1.1`,
    `host: ${host}`,
    'connection: close',
    `content-length: ${bytes.length}`,
    ...[...request.headers].map(([name, value]) => `${name}: ${value}`),
  ]
  return { head: `${lines.join('\r\n')}\r\n\r\n`, body: bytes }
}

// Waits until the bytes have left, so that two writes are two packets.
function write(socket: Socket, bytes: string | Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    if (bytes.length === 0) resolve()
    else socket.write(bytes, () => setImmediate(resolve))
  })
}
