import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { promisify } from 'node:util'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPgBouncer } from './pgbouncer.ts'
import { type OwnPostgresServer, onConnection, postgresKinds, startPostgres } from './postgres.ts'
import { startProxy } from './proxy.ts'

describe.each(postgresKinds())('$name', (kind) => {
  let server: OwnPostgresServer
  beforeAll(async () => {
    server = await startPostgres({ kind })
  })
  afterAll(() => server?.stop())

  it('keeps what was committed over a kill', async () => {
    const url = server.url(await server.createDatabase())
    await onConnection(url, (client) => client.query('CREATE TABLE kept AS SELECT 7 AS value'))
    await server.kill()
    await expect(onConnection(url, (client) => client.query('SELECT 1'))).rejects.toThrow()
    await server.start()
    const { rows } = await onConnection(url, (client) => client.query('SELECT value FROM kept'))
    expect(rows).toEqual([{ value: 7 }])
  })

  it('ends open connections when it is killed, also those whose process is held up', async () => {
    const client = new pg.Client({ connectionString: server.url() })
    await client.connect()
    const ended = once(client, 'error')
    const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
    process.kill(rows[0]?.pid, 'SIGSTOP')
    await server.kill()
    await ended
    await server.start()
  })

  it('answers through PgBouncer', async () => {
    const pgBouncer = await startPgBouncer(server)
    try {
      const database = await server.createDatabase()
      const { rows } = await onConnection(pgBouncer.url(database), (client) =>
        client.query('SELECT current_database() AS name'),
      )
      expect(rows).toEqual([{ name: database }])
    } finally {
      await pgBouncer.stop()
    }
  })
})

it('leaves no server behind when the process that started it is killed', async () => {
  const script = `
    import { startPostgres } from ${JSON.stringify(new URL('./postgres.ts', import.meta.url).href)}
    const server = await startPostgres()
    console.log(server.port)
    process.kill(process.pid, 'SIGKILL')`
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--input-type=module',
    '--eval',
    script,
  ]).catch((error) => error)
  const port = Number(stdout)
  expect(port).toBeGreaterThan(0)
  await expect.poll(() => isListening(port), { timeout: 10_000 }).toBe(false)
})

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => resolve(true))
    socket.on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}

describe('the proxy', () => {
  async function echo() {
    const received: string[] = []
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.on('data', (piece) => {
        received.push(piece.toString())
        socket.write(`echo ${piece}`)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    if (typeof address !== 'object' || address === null) throw new Error('No port.')
    const proxy = await startProxy({ host: '127.0.0.1', port: address.port })
    const client = connect(proxy.port, proxy.host)
    const replies: string[] = []
    client.on('error', () => {})
    client.on('data', (piece) => replies.push(piece.toString()))
    return {
      proxy,
      client,
      received,
      replies,
      async close() {
        client.destroy()
        await proxy.close()
        await new Promise((resolve) => server.close(resolve))
      },
    }
  }

  it('passes both directions on, and holds them back when told', async () => {
    const { proxy, client, replies, close } = await echo()
    client.write('one')
    await expect.poll(() => replies).toEqual(['echo one'])
    proxy.delay(100)
    const sentAtMs = performance.now()
    client.write('two')
    await expect.poll(() => replies.length).toBe(2)
    expect(performance.now() - sentAtMs).toBeGreaterThan(190)
    await close()
  })

  it('drops one direction only', async () => {
    const { proxy, client, received, replies, close } = await echo()
    client.write('one')
    await expect.poll(() => replies.length).toBe(1)
    proxy.drop('replies')
    client.write('two')
    await expect.poll(() => received).toEqual(['one', 'two'])
    expect(replies).toEqual(['echo one'])
    proxy.drop('requests')
    client.write('three')
    await expect.poll(() => proxy.droppedBytes()).toBe('echo twothree'.length)
    proxy.accept()
    client.write('four')
    await expect.poll(() => replies).toEqual(['echo one', 'echo four'])
    await close()
  })

  it('swallows one reply and cuts the connection', async () => {
    const { proxy, client, received, replies, close } = await echo()
    const cut = new Promise((resolve) => client.on('close', resolve))
    const swallowed = proxy.swallowReply()
    client.write('one')
    await swallowed
    await cut
    expect(received).toEqual(['one'])
    expect(replies).toEqual([])
    await close()
  })

  it('refuses connections until told otherwise', async () => {
    const { proxy, client, close } = await echo()
    const cut = new Promise((resolve) => client.on('close', resolve))
    proxy.refuse()
    await cut
    const ended = new Promise((resolve) => {
      const other = connect(proxy.port, proxy.host)
      other.on('error', () => {})
      other.on('close', resolve)
    })
    await ended
    proxy.accept()
    await expect.poll(() => isListening(proxy.port)).toBe(true)
    await close()
  })
})
