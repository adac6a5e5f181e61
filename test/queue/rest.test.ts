// A worker at rest asks seldom, and is told of work by the database.
import { createInbox, createWorker } from '@webhook-inbox/core'
import { postgresStore } from '@webhook-inbox/postgres'
import { expect, it } from 'vitest'
import { openPool, startPostgres } from '../services/postgres.ts'
import { entryOf } from './processes.ts'

it('sends a dozen statements in a minute, and starts what another process stores without asking', async () => {
  const server = await startPostgres()
  const url = server.url(await server.createDatabase())
  const [here, there] = [openPool(url, 4), openPool(url, 4)]
  let statements = 0
  here.on('acquire', () => {
    statements += 1
  })
  const store = postgresStore({ pool: here, onWarning: () => {} })
  await store.setup()
  const started: number[] = []
  const worker = createWorker({
    inbox: createInbox({ store }),
    handler: () => void started.push(performance.now()),
  })
  worker.start()
  const other = postgresStore({ pool: there, onWarning: () => {} })
  // It listens, and has asked for what was there before.
  await expect.poll(() => worker.health().lastTakeAt).toBeDefined()
  await new Promise((resolve) => setTimeout(resolve, 2000))

  const seconds = 12
  const before = statements
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  // One question in five seconds, and the purge once a minute.
  expect(statements - before).toBeLessThanOrEqual(4)

  // Nobody asks for the next seconds: it is the notification that starts it.
  await other.claim([entryOf('told')])
  await expect.poll(() => started.length, { interval: 5, timeout: 4000 }).toBe(1)
  await worker.stop()
  await store.close()
  await other.close()
  await Promise.all([here.end(), there.end()])
  await server.stop()
}, 60_000)
