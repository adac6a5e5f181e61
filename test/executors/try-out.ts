/** What has to work on every client: a receiver whose handler commits with the completion, and the store by itself. */
import assert from 'node:assert/strict'
import { type ClaimedDelivery, githubWebhook, type Store } from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'

const secret = 'a secret of this test'

/** The table that the handlers write to. */
export const pushesTable = 'CREATE TABLE pushes (delivery text PRIMARY KEY)'

/**
 * Rolls a handler back after it has completed its delivery, then lets it commit, then sends a copy.
 * @param countPushes how many rows the handlers have committed
 */
export async function tryHandler(
  store: Store,
  handler: (webhook: ClaimedDelivery) => Promise<void>,
  countPushes: () => Promise<number>,
): Promise<void> {
  await store.setup()
  const undo = new Error('undo')
  let undoing = true
  const attempts: number[] = []
  const thrown: unknown[] = []
  const receive = githubWebhook({
    secret,
    store,
    onError: (error) => thrown.push(error),
    async handler(webhook) {
      attempts.push(webhook.attempt)
      await handler({
        ...webhook,
        async completeIn(tx) {
          await webhook.completeIn(tx)
          if (undoing) throw undo
        },
      })
    },
  })
  const signed = await signRequest('github', { secret, event: 'push', payload: { ref: 'main' } })
  const send = async (): Promise<string> => {
    const answer = await receive(new Request('https://hooks.example.test/', signed))
    return `${answer.status} ${answer.headers.get('webhook-inbox-status')}`
  }
  assert.match(await send(), /^5/)
  assert.deepEqual(thrown, [undo])
  assert.equal(await countPushes(), 0)
  undoing = false
  const first = await send()
  assert.deepEqual(thrown, [undo])
  assert.match(first, /^200 /)
  assert.equal(await countPushes(), 1)
  assert.equal(await send(), '200 completed')
  assert.equal(await countPushes(), 1)
  assert.deepEqual(attempts, [1, 2])
}

/** Sets up, claims, answers copies, and gives bytes and headers back as they were. */
export async function tryStore(store: Store): Promise<void> {
  await store.setup()
  const key = { provider: 'github', endpoint: '', deliveryId: 'd' }
  const entry = { key, leaseMs: 60_000, mode: 'inline', unfinishedRetentionMs: 60_000 } as const
  const claim = async (token: string) => (await store.claim([{ ...entry, token }]))[0]
  const granted = await claim('the owner')
  assert.equal(granted?.status, 'claimed')
  assert.equal((await claim('a copy'))?.status, 'processing')
  const hold = { key, token: 'the owner', fence: granted.fence }
  assert.equal(await store.renew(hold, 60_000), 'ok')
  assert.equal(await store.complete(hold, { retentionMs: 60_000 }), 'ok')
  assert.equal((await claim('a copy'))?.status, 'completed')

  const payload = {
    body: Uint8Array.from({ length: 256 }, (_, byte) => byte),
    headers: { 'x-quote': '" \\ $1 ünïcode' },
  }
  const queued = { ...key, deliveryId: 'q' }
  await store.claim([{ ...entry, key: queued, token: 'a route', mode: 'queued', payload }])
  const [taken] = await store.take({ limit: 1, leaseMs: 60_000, deadRetentionMs: 60_000 })
  assert.deepEqual(taken?.payload, payload)
  await store.close()
}
