/** Server processes of the tests: in folders of their own, on free ports, never left behind. */
import { type ChildProcess, spawn } from 'node:child_process'
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Who runs servers that refuse root: nobody, when the tests run as root. */
export const unprivileged: { readonly uid?: number; readonly gid?: number } =
  process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {}

/** An empty folder that the unprivileged user owns. */
export function serverFolder(name: string): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), `webhook-inbox-${name}-`))
  const { uid, gid } = unprivileged
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid)
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5 }) }
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (typeof address !== 'object' || address === null) throw new Error('No port was given.')
  return address.port
}

export interface RunningServer {
  /** What the server has written so far. */
  log(): string
  /** Whether it still runs. */
  isRunning(): boolean
  /** Asks it to end and waits; after five seconds it is killed. */
  stop(): Promise<void>
}

// The watcher ends the server as soon as its own input ends: also when the test process is killed.
const watcher = `signal=$1; shift
"$@" </dev/null 3<&- & server=$!
( cat >/dev/null; kill -s $signal $server; sleep 5; kill -s KILL $server ) <&3 2>/dev/null & guard=$!
exec 3<&-
wait $server; code=$?
kill $guard 2>/dev/null
exit $code`

/**
 * Starts a server and waits until `isReady` says so.
 * @throws Error with the server's log when it ends or is not ready within half a minute
 */
export async function startServer(
  program: string,
  args: readonly string[],
  options: {
    readonly folder: string
    readonly env?: Readonly<Record<string, string>>
    /** What makes it end in good order. @default 'INT' */
    readonly stopSignal?: 'INT' | 'TERM'
    isReady(): Promise<boolean>
  },
): Promise<RunningServer> {
  const { stopSignal = 'INT' } = options
  const logFile = join(options.folder, 'server.log')
  const log = openSync(logFile, 'a')
  const child = spawn('/bin/sh', ['-c', watcher, 'watcher', stopSignal, program, ...args], {
    ...unprivileged,
    cwd: options.folder,
    env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC', ...options.env },
    stdio: ['ignore', log, log, 'pipe'],
  })
  closeSync(log)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.once('error', () => {})
  const server: RunningServer = {
    log: () => readFileSync(logFile, 'utf8'),
    isRunning: () => isAlive(child),
    async stop() {
      child.stdio[3]?.destroy()
      await ended
    },
  }
  const deadlineMs = Date.now() + 30_000
  while (!(await options.isReady())) {
    if (isAlive(child) && Date.now() < deadlineMs) {
      await new Promise((resolve) => setTimeout(resolve, 25))
      continue
    }
    await server.stop()
    throw new Error(`${program} did not start:\n${server.log()}`)
  }
  return server
}

function isAlive(child: ChildProcess): boolean {
  return child.exitCode === null && child.signalCode === null
}
