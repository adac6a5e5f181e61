// The store on other libraries' clients, and completion in their own transactions. What is run is what the README of
// the package shows.
import { rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Pool as NeonPool, neonConfig } from '@neondatabase/serverless'
import { type PostgresClient, postgresStore } from '@webhook-inbox/postgres'
import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from 'vitest'
import { createWebSocketStream, WebSocket, WebSocketServer } from 'ws'
import { onConnection, type PostgresServer, postgresTargets } from '../services/postgres.ts'
import { loadReadmeFile, makeFolder, type ReadmeFile } from './readme-file.ts'
import { pushesTable, tryHandler, tryStore } from './try-out.ts'

const folder = makeFolder('executors')
let server: PostgresServer
let url: string
let close: (() => Promise<void>) | undefined

beforeAll(async () => {
  const target = postgresTargets().at(-1)
  if (target === undefined) throw new Error('No PostgreSQL is here.')
  server = await target.start()
})
afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true })
})
beforeEach(async () => {
  url = server.url(await server.createDatabase())
  await onConnection(url, (client) => client.query(pushesTable))
})
afterEach(async () => {
  await close?.()
  close = undefined
})

async function countPushes(): Promise<number> {
  const { rows } = await onConnection(url, (client) => client.query('SELECT FROM pushes'))
  return rows.length
}

const through = (client: PostgresClient) =>
  postgresStore({ pool: client, table: 'through_the_library', onWarning: () => {} })

describe('postgresStore', () => {
  it.for([
    ['postgresjs', 'export const [client, close] = [clientOf(sql), () => sql.end()]'],
    ['kysely', 'export const [client, close] = [clientOf(db), () => db.destroy()]'],
    ['drizzle', 'export const [client, close] = [clientOf(db), () => db.$client.end()]'],
  ] as const)('works on %s', async ([name, added]) => {
    const file = await loadReadmeFile<ReadmeFile>(name, url, { added, folder })
    close = file.close
    await tryHandler(file.store, file.handler, countPushes)
    await tryStore(through(file.client))
  })

  it("works on the Pool of Neon's driver, over WebSocket", async () => {
    const proxy = await startWebSocketProxy(server)
    neonConfig.webSocketConstructor = WebSocket
    neonConfig.wsProxy = () => proxy.address
    neonConfig.useSecureWebSocket = false
    neonConfig.pipelineConnect = false
    const pool = new NeonPool({ connectionString: url, max: 3 })
    close = async () => {
      await pool.end()
      await proxy.stop()
    }
    await tryHandler(
      postgresStore({ pool, onWarning: () => {} }),
      async (webhook) => {
        const client = await pool.connect()
        try {
          await client.query('BEGIN')
          await client.query('INSERT INTO pushes (delivery) VALUES ($1)', [webhook.id])
          await webhook.completeIn(client)
          await client.query('COMMIT')
        } catch (error) {
          await client.query('ROLLBACK')
          throw error
        } finally {
          client.release()
        }
      },
      countPushes,
    )
    await tryStore(through(pool))
  })
})

/** What stands before a database of Neon: bytes of a WebSocket to its socket and back. */
async function startWebSocketProxy({
  host,
  port,
}: PostgresServer): Promise<{ readonly address: string; stop(): Promise<void> }> {
  const http = createServer()
  const sockets = new WebSocketServer({ server: http })
  sockets.on('connection', (socket) => {
    const inner = connect(port, host)
    const outer = createWebSocketStream(socket)
    inner.on('error', () => outer.destroy())
    outer.on('error', () => inner.destroy())
    outer.pipe(inner).pipe(outer)
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port: own } = http.address() as AddressInfo
  return {
    address: `127.0.0.1:${own}`,
    async stop() {
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
      await new Promise((resolve) => http.close(resolve))
    },
  }
}
