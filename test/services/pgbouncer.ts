/** PgBouncer in transaction mode before a PostgreSQL server. */
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { requireProgram } from './install.ts'
import { onConnection, type PostgresServer } from './postgres.ts'
import { freePort, serverFolder, startServer, unprivileged } from './process.ts'

export interface PgBouncer {
  readonly host: string
  readonly port: number
  /** The connection string of a database of the server, through the pooler. */
  url(database: string): string
  stop(): Promise<void>
}

/**
 * Starts a pooler that gives each transaction whichever of `poolSize` connections is free.
 * @throws Error that says what to install when there is no pgbouncer
 */
export async function startPgBouncer(
  server: PostgresServer,
  { poolSize = 4 }: { readonly poolSize?: number } = {},
): Promise<PgBouncer> {
  const program = await requireProgram(['pgbouncer'], 'pgbouncer')
  const folder = serverFolder('pgbouncer')
  const host = '127.0.0.1'
  const port = await freePort()
  const users = join(folder.path, 'users.txt')
  const config = join(folder.path, 'pgbouncer.ini')
  writeFileSync(users, `"${server.user}" ""\n`)
  writeFileSync(
    config,
    `[databases]
* = host=${server.host} port=${server.port}
[pgbouncer]
listen_addr = ${host}
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${users}
pool_mode = transaction
default_pool_size = ${poolSize}
max_client_conn = 500
server_idle_timeout = 5
`,
  )
  const { uid, gid } = unprivileged
  if (uid !== undefined && gid !== undefined)
    for (const file of [users, config]) chownSync(file, uid, gid)
  const url = (database: string) => `postgres://${server.user}@${host}:${port}/${database}`
  const running = await startServer(program, [config], {
    folder: folder.path,
    stopSignal: 'TERM',
    async isReady() {
      try {
        await onConnection(url('postgres'), (client) => client.query('SELECT 1'))
        return true
      } catch {
        return false
      }
    },
  })
  return {
    host,
    port,
    url,
    async stop() {
      await running.stop()
      folder.remove()
    },
  }
}
