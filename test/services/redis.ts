/** Redis servers of the tests: our own, in temporary folders on free ports, or the one of REDIS_URL. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { requireProgram } from './install.ts'
import { freePort, type RunningServer, serverFolder, startServer } from './process.ts'

export interface RedisServer {
  readonly host: string
  readonly port: number
  /** The connection string. */
  readonly url: string
  stop(): Promise<void>
}

/** A server of our own, which may be treated badly. */
export interface OwnRedisServer extends RedisServer {
  /** Kills it the hard way, as the kernel would for want of memory. */
  kill(): Promise<void>
  /** Ends it in good order; its data stays for `start`. */
  shutDown(): Promise<void>
  /** Starts it again on the same data and port. */
  start(): Promise<void>
  log(): string
}

export interface RedisServerOptions {
  /** Settings as on the command line, without the leading dashes: `{ appendonly: 'yes' }`. */
  readonly settings?: Readonly<Record<string, string>>
  /** @default a free one */
  readonly port?: number
}

/** The server of REDIS_URL when that is set, else one of our own. */
export async function startOrUseRedis(): Promise<RedisServer> {
  const url = process.env.REDIS_URL
  if (url === undefined || url === '') return startRedis()
  const { hostname, port } = new URL(url)
  return { host: hostname, port: Number(port || 6379), url, stop: async () => {} }
}

/** Starts `redis-server` or `valkey-server`, without persistence unless the settings say so. */
export async function startRedis(options: RedisServerOptions = {}): Promise<OwnRedisServer> {
  const program = await requireProgram(['redis-server', 'valkey-server'], 'redis-server')
  const folder = serverFolder('redis')
  const port = options.port ?? (await freePort())
  const pidFile = join(folder.path, 'server.pid')
  const settings = {
    bind: '127.0.0.1',
    port: String(port),
    dir: folder.path,
    pidfile: pidFile,
    save: '',
    appendonly: 'no',
    'repl-diskless-sync-delay': '0',
    ...options.settings,
  }
  const args = Object.entries(settings).flatMap(([name, value]) => [
    `--${name}`,
    ...(name === 'save' && value === '' ? [''] : value.split(' ')),
  ])
  let server: RunningServer | undefined

  async function start(): Promise<void> {
    server = await startServer(program, args, {
      folder: folder.path,
      stopSignal: 'TERM',
      isReady: () => answersPing(port),
    })
  }

  await start()
  return {
    host: '127.0.0.1',
    port,
    url: `redis://127.0.0.1:${port}`,
    log: () => server?.log() ?? '',
    start,
    async kill() {
      process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGKILL')
      await server?.stop()
    },
    async shutDown() {
      await server?.stop()
    },
    async stop() {
      await server?.stop()
      folder.remove()
    },
  }
}

/** Runs `redis-cli` on a server; answers what it printed. */
export async function redisCli(port: number, ...args: string[]): Promise<string> {
  const program = await requireProgram(['redis-cli', 'valkey-cli'], 'redis-tools')
  return new Promise((resolve, reject) => {
    execFile(program, ['-h', '127.0.0.1', '-p', String(port), ...args], (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`redis-cli ${args.join(' ')}: ${stdout}${stderr}`, { cause: error }))
    })
  })
}

/** Whether a server answers, and has loaded its data. */
export function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(1000, () => end(false))
    socket.on('data', (piece) => end(piece.toString().startsWith('+PONG')))
    socket.on('error', () => end(false))
    socket.on('close', () => resolve(false))
  })
}
