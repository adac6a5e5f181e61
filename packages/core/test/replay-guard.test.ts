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
  await send('first-a', '1', 'tenant a')
  await send('replayed-1', '1', 'tenant a')
  await send('replayed-2', '2', 'tenant a')
  await send('first-b', '1', 'tenant b')
  await send('replayed-3', '3', 'tenant b')
  expect(ran).toEqual(['first-a', 'first-b'])
})
