import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunRecord } from './report.ts'

/** One receiver as a process of its own, with its database and its record of runs. */
export interface ReceiverProcess {
  readonly framework: string
  /** Where it listens; changes when it is started again. */
  readonly url: string
  start(): Promise<void>
  /** Resolves when the handler of that delivery has begun. */
  started(id: string): Promise<void>
  /** SIGKILL: nothing can be put in order any more. */
  kill(): Promise<void>
  /** SIGTERM: lets what runs come to its end. */
  stop(): Promise<void>
  runs(): readonly RunRecord[]
}

export interface ReceiverSettings {
  /** Holds the database and the record of runs. */
  readonly folder: string
  readonly secret: string
  readonly leaseMs: number
  /** The delivery whose first run never ends. */
  readonly hangOn: string
  readonly onRun: (framework: string, run: RunRecord) => void
}

export function receiverProcess(framework: string, settings: ReceiverSettings): ReceiverProcess {
  const runsFile = join(settings.folder, `${framework}-runs.jsonl`)
  let child: ChildProcess | undefined
  let port = 0

  async function end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }

  return {
    framework,
    get url() {
      return `http://127.0.0.1:${port}/webhooks/github`
    },
    async start() {
      child = fork(join(import.meta.dirname, `${framework}.ts`), {
        execArgv: [...process.execArgv, '--disable-warning=ExperimentalWarning'],
        env: {
          ...process.env,
          WEBHOOK_SECRET: settings.secret,
          DATABASE: join(settings.folder, `${framework}.db`),
          RUNS: runsFile,
          LEASE_MS: String(settings.leaseMs),
          HANG_ON: settings.hangOn,
        },
      })
      child.on('message', (message: Message) => {
        if ('run' in message) settings.onRun(framework, message.run)
      })
      port = await new Promise<number>((resolve, reject) => {
        child?.once('exit', (code) => reject(new Error(`${framework} did not start (${code})`)))
        child?.on('message', (message: Message) => {
          if ('port' in message) resolve(message.port)
        })
      })
    },
    started(id) {
      return new Promise((resolve, reject) => {
        child?.once('exit', () => reject(new Error(`${framework} died before it ran ${id}`)))
        child?.on('message', (message: Message) => {
          if ('run' in message && message.run.id === id) resolve()
        })
      })
    },
    kill: () => end('SIGKILL'),
    stop: () => end('SIGTERM'),
    runs: () => readFileSync(runsFile, 'utf8').trim().split('\n').map(parseRun),
  }
}

type Message = { readonly port: number } | { readonly run: RunRecord }

function parseRun(line: string): RunRecord {
  const parsed: unknown = JSON.parse(line)
  if (isRun(parsed)) return parsed
  throw new Error(`This is not a record of a run: ${line}`)
}

function isRun(value: unknown): value is RunRecord {
  return typeof value === 'object' && value !== null && 'phase' in value && 'fence' in value
}
