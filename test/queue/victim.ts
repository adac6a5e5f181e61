// A process that kills itself at the point which its arguments name. It receives or works, and tells its parent what
// it has done over the IPC channel.
import { createServer } from 'node:http'
import process from 'node:process'
import { createInbox, createWorker, type Store } from '@webhook-inbox/core'
import { githubWebhook } from '@webhook-inbox/node'
import { openPlace, type StoreKind } from './stores.ts'

const [kind = '', address = '', role = '', point = '', secret = ''] = process.argv.slice(2)
const place = await openPlace(kind as StoreKind, address)

function die(): never {
  process.kill(process.pid, 'SIGKILL')
  // The signal comes at the next turn at the latest: nothing may happen until then.
  for (;;);
}

function at(name: string): void {
  if (name === point) die()
}

/** The store, with a point before and after every operation. */
function withPoints(store: Store): Store {
  const wrapped = Object.entries(store).map(([name, operation]) => [
    name,
    typeof operation !== 'function' || name === 'watch'
      ? operation
      : async (...values: unknown[]) => {
          at(`before ${name}`)
          const answer: unknown = await operation(...values)
          // Taking nothing is not yet the point.
          if (name !== 'take' || (Array.isArray(answer) && answer.length > 0)) at(`after ${name}`)
          return answer
        },
  ])
  return { ...store, ...Object.fromEntries(wrapped) }
}

const inbox = createInbox({
  store: withPoints(place.store),
  leaseMs: 900,
  retry: { minMs: 1, maxMs: 2 },
  onError: () => {},
})

if (role === 'receive') {
  const server = createServer(githubWebhook({ secret, inbox, queue: true }))
  server.on('request', (_request, response) => response.on('finish', () => at('after answer')))
  server.listen(0, '127.0.0.1', () => process.send?.(server.address()))
} else {
  let failures = point.endsWith('fail') ? 1 : 0
  const worker = createWorker({
    inbox,
    purge: false,
    pollMs: 50,
    async handler(webhook) {
      at('in handler')
      if (failures-- > 0) throw new Error('not yet')
      if (point === 'after effect') {
        await place.effect(webhook)
        at('after effect')
      }
      if (point.endsWith('renew')) await new Promise((resolve) => setTimeout(resolve, 5000))
      if (point.endsWith('release')) {
        await new Promise((_, reject) => webhook.signal.addEventListener('abort', reject))
      }
      // Completion by the worker itself has points of its own.
      if (point.endsWith('complete')) return place.effect(webhook)
      await place.effectAndComplete(webhook, () => at('before commit'))
      at('after commit')
    },
  })
  worker.start()
  process.on('message', () => worker.stop({ timeoutMs: 0 }))
  process.send?.('started')
}
process.on('disconnect', () => process.exit())
