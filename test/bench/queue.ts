/**
 * What a sender waits for when the handler takes a second: the same Express route inline and queued, in one run. And how
 * soon a worker at rest begins a delivery that another process has stored in Postgres.
 */
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInbox, createWorker, type Inbox } from '@webhook-inbox/core'
import { githubWebhook } from '@webhook-inbox/express'
import { postgresStore } from '@webhook-inbox/postgres'
import { sqliteStore } from '@webhook-inbox/sqlite'
import { signRequest } from '@webhook-inbox/testkit'
import express, { type RequestHandler } from 'express'
import { openPool, startPostgres } from '../services/postgres.ts'

const secret = 'a secret of the bench'
const senders = 20
const rounds = 5
const handlerMs = 1000

const work = () => new Promise((resolve) => setTimeout(resolve, handlerMs))

/** Answer times in milliseconds, sorted. */
async function measure(guard: RequestHandler): Promise<readonly number[]> {
  const app = express()
  app.post('/', guard, async (_req, res) => {
    await work()
    res.sendStatus(204)
  })
  const server = createServer(app)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const times: number[] = []
  await Promise.all(
    Array.from({ length: senders }, async () => {
      for (let round = 0; round < rounds; round++) {
        const request = await signRequest('github', { secret, event: 'push' })
        const startedAtMs = performance.now()
        const answer = await fetch(`http://127.0.0.1:${port}/`, request)
        await answer.arrayBuffer()
        times.push(performance.now() - startedAtMs)
        if (answer.status >= 300) throw new Error(`The answer was ${answer.status}.`)
      }
    }),
  )
  server.closeAllConnections()
  server.close()
  return times.toSorted((a, b) => a - b)
}

function at(times: readonly number[], share: number): number {
  return times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
}

async function answers(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-bench-'))
  const store = sqliteStore({ path: join(folder, 'inbox.db') })
  const inbox: Inbox = createInbox({ store })
  const inline = await measure(githubWebhook({ secret, inbox }))
  const worker = createWorker({ inbox, handler: work, concurrency: senders })
  worker.start()
  const queued = await measure(githubWebhook({ secret, inbox, queue: true }))
  await worker.stop()
  await store.close()
  rmSync(folder, { recursive: true })
  console.log(
    `### Answers of an Express route on SQLite, ${senders} senders, handler of ${handlerMs} ms\n`,
  )
  console.log('|        | p50 ms | p99 ms |\n|--------|-------:|-------:|')
  for (const [name, times] of [
    ['inline', inline],
    ['queued', queued],
  ] as const)
    console.log(`| ${name} | ${at(times, 0.5).toFixed(1)} | ${at(times, 0.99).toFixed(1)} |`)
  console.log(
    `| ratio | ${(at(inline, 0.5) / at(queued, 0.5)).toFixed(0)} × | ${(at(inline, 0.99) / at(queued, 0.99)).toFixed(0)} × |\n`,
  )
}

async function starts(): Promise<void> {
  const server = await startPostgres({ settings: { fsync: 'on' } })
  const url = server.url(await server.createDatabase())
  const [here, there] = [openPool(url, 4), openPool(url, 4)]
  const store = postgresStore({ pool: here, onWarning: () => {} })
  await store.setup()
  let begun = (): void => {}
  const worker = createWorker({ inbox: createInbox({ store }), handler: () => begun() })
  worker.start()
  await new Promise((resolve) => setTimeout(resolve, 1500))
  const other = postgresStore({ pool: there, onWarning: () => {} })
  const times: number[] = []
  for (let index = 0; index < 50; index++) {
    const ran = new Promise<void>((resolve) => {
      begun = resolve
    })
    const startedAtMs = performance.now()
    await other.claim([
      {
        key: { provider: 'github', endpoint: '', deliveryId: `d-${index}` },
        token: `token-${index}`,
        leaseMs: 30_000,
        mode: 'queued',
        payload: { body: new TextEncoder().encode('{}'), headers: {} },
        unfinishedRetentionMs: 60_000,
      },
    ])
    await ran
    times.push(performance.now() - startedAtMs)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  await worker.stop()
  await store.close()
  await other.close()
  await Promise.all([here.end(), there.end()])
  await server.stop()
  const sorted = times.toSorted((a, b) => a - b)
  console.log('### From storing in one process to the handler in another, Postgres with NOTIFY\n')
  console.log('| p50 ms | p99 ms |\n|-------:|-------:|')
  console.log(`| ${at(sorted, 0.5).toFixed(1)} | ${at(sorted, 0.99).toFixed(1)} |`)
}

await answers()
await starts()
