// What the three receivers share: settings, the record of what really ran, and how they start and stop.
import { appendFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ClaimedDelivery, createInbox, type Inbox } from '@webhook-inbox/core'
import { sqliteStore } from '@webhook-inbox/sqlite'
import type { RunRecord } from './report.ts'

export const path = '/webhooks/github'
export const secret: string = setting('WEBHOOK_SECRET')

/** A short lease, so that the demo need not wait long until a dead receiver's claim is free. */
export const inbox: Inbox = createInbox({
  store: sqliteStore({ path: setting('DATABASE') }),
  leaseMs: Number(setting('LEASE_MS')),
})

/**
 * The business of the demo: writes down that it ran, in a file that the library knows nothing of. One delivery
 * never comes to its end on its first attempt: the demo kills the process there.
 */
export async function work(webhook: ClaimedDelivery): Promise<void> {
  record(webhook, 'started')
  if (webhook.id === process.env.HANG_ON && webhook.attempt === 1) await new Promise(() => {})
  await sleep(10)
  record(webhook, 'finished')
}

function record({ id, event, attempt, fence }: ClaimedDelivery, phase: RunRecord['phase']): void {
  const line: RunRecord = { phase, id, event, attempt, fence, atMs: Date.now() }
  appendFileSync(setting('RUNS'), `${JSON.stringify(line)}\n`)
  process.send?.({ run: line })
}

/** Listens on a free port, tells it to the demo, and stops cleanly: no new request, what runs is awaited. */
export function serve(server: Server): void {
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (typeof address === 'object' && address !== null) process.send?.({ port: address.port })
  })
  let stopping = false
  async function stop(): Promise<void> {
    if (stopping) return
    stopping = true
    server.close()
    await inbox.drain({ timeoutMs: 5000 })
    await inbox.close()
    await inbox.store.close()
    process.exit()
  }
  // Disconnected: the demo itself is gone.
  for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const) process.on(signal, stop)
}

function setting(name: string): string {
  const value = process.env[name]
  if (value === undefined) throw new Error(`${name} is not set: the demo starts this file.`)
  return value
}
