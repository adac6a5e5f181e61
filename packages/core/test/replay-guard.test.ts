import { createReceiver, memoryStore } from '@webhook-inbox/core'
import { expect, it } from 'vitest'
import { signed } from './support.ts'

it('tells bodies apart by the secret that matched, never by a header', async () => {
  const ran: string[] = []
  const receiver = createReceiver({
    provider: 'github',
    secret: ['tenant a', 'tenant b'],
    store: memoryStore(),
    replayGuard: true,
    handler: (webhook) => void ran.push(webhook.id),
  })
  const send = (id: string, hookId: string, secret: string) =>
    receiver.receive(
      signed('{}', { 'x-github-delivery': id, 'x-github-hook-id': hookId }, secret),
      undefined,
    )
  await send('first of a', '1', 'tenant a')
  await send('replayed under another id', '1', 'tenant a')
  await send('replayed under another hook', '2', 'tenant a')
  await send('first of b', '1', 'tenant b')
  await send('replayed', '3', 'tenant b')
  expect(ran).toEqual(['first of a', 'first of b'])
})
