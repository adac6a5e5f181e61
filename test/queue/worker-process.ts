// A worker in a process of its own. Its handler does what the delivery's payload says, and tells its parent over the IPC
// channel what has happened.
import process from 'node:process'
import { createInbox, createWorker } from '@webhook-inbox/core'
import { openPlace, type StoreKind } from './stores.ts'

const [kind = '', address = '', lease = '1000', concurrency = '10', maxAttempts = '8'] =
  process.argv.slice(2)
const place = await openPlace(kind as StoreKind, address)
const inbox = createInbox({
  store: place.store,
  leaseMs: Number(lease),
  retry: { maxAttempts: Number(maxAttempts), minMs: 1, maxMs: 5 },
  observer: ({ type }) => process.send?.({ type }),
  onError: () => {},
})

const worker = createWorker({
  inbox,
  concurrency: Number(concurrency),
  purge: false,
  pollMs: 100,
  async handler(webhook) {
    const { id, attempt, signal } = webhook
    const { act } = Object(webhook.payload)
    await place.effect(webhook)
    process.send?.({ type: 'handler', id, attempt })
    if (act === 'die') {
      process.kill(process.pid, 'SIGKILL')
      for (;;);
    }
    if (act === 'wait') {
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve()
        else signal.addEventListener('abort', () => resolve())
      })
      process.send?.({ type: 'aborted', id, reason: String(signal.reason) })
    }
    if (act === 'rest') await new Promise((resolve) => setTimeout(resolve, 20))
  },
})
worker.start()
process.on('message', async () => {
  const { running } = await worker.stop({ timeoutMs: 10_000 })
  process.send?.({ type: 'stopped', running })
})
process.on('disconnect', () => process.exit())
process.send?.({ type: 'ready' })
