/** Worker processes of the tests, and what they tell. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ClaimEntry, Store } from '@webhook-inbox/core'
import type { StoreKind } from './stores.ts'

const file = fileURLToPath(new URL('./worker-process.ts', import.meta.url))

export interface Told {
  readonly type: string
  readonly id?: string
  readonly attempt?: number
  readonly reason?: string
}

export interface WorkerProcess {
  readonly child: ChildProcess
  readonly told: readonly Told[]
  readonly died: Promise<unknown>
  kill(): void
}

const started = new Set<ChildProcess>()

/** Ends whatever is left. */
export function killLeftWorkers(): void {
  for (const child of started) child.kill('SIGKILL')
}

export async function startWorker(options: {
  readonly kind: StoreKind
  readonly address: string
  readonly leaseMs: number
  readonly concurrency?: number
  readonly maxAttempts?: number
}): Promise<WorkerProcess> {
  const { kind, address, leaseMs, concurrency = 10, maxAttempts = 8 } = options
  const child = fork(file, [kind, address, leaseMs, concurrency, maxAttempts].map(String), {
    execArgv: ['--conditions=@webhook-inbox/source'],
  })
  const told: Told[] = []
  child.on('message', (message: Told) => told.push(message))
  const died = once(child, 'exit')
  // A test that fails must not leave it behind, least of all stopped: it would wait for it for ever.
  started.add(child)
  child.once('exit', () => started.delete(child))
  await once(child, 'message')
  return { child, told, died, kill: () => void child.kill('SIGKILL') }
}

/** A queued delivery whose handler is to act in a way of its own. */
export function entryOf(deliveryId: string, act = '', order?: string): ClaimEntry {
  return {
    key: { provider: 'github', endpoint: '', deliveryId },
    token: crypto.randomUUID().replaceAll('-', ''),
    leaseMs: 1000,
    mode: 'queued',
    event: 'push',
    payload: {
      body: new TextEncoder().encode(JSON.stringify({ act })),
      headers: {
        'content-type': 'application/json',
        'x-github-delivery': deliveryId,
        'x-github-event': 'push',
      },
    },
    unfinishedRetentionMs: 3_600_000,
    ...(order === undefined ? {} : { order }),
  }
}

/** Waits until nothing of the store is unfinished, at most `timeoutMs`. */
export async function settled(store: Store, timeoutMs: number): Promise<boolean> {
  const until = performance.now() + timeoutMs
  while (performance.now() < until) {
    const { states } = await store.stats()
    if (states.pending + states.processing + states.failed === 0) return true
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  return false
}
