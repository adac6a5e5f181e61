import { createReceiver, memoryStore, storeUnavailable } from '@webhook-inbox/core'
import { afterEach, expect, it, vi } from 'vitest'
import { secret, signed, withOperations } from './support.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

function failing(error: unknown): () => never {
  return () => {
    throw error
  }
}

async function logOf(error: unknown): Promise<string> {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  const receiver = createReceiver({
    provider: 'github',
    secret,
    store: memoryStore(),
    handler: failing(error),
  })
  await receiver.receive(signed('{}'), undefined)
  expect(log).toHaveBeenCalledTimes(1)
  return String(log.mock.calls[0]?.[0])
}

it('tells the console what a handler threw when nobody listens: kind and place, never the message', async () => {
  const text = await logOf(new TypeError('the card number 4242\n    4242 of canary'))
  expect(text).toMatch(/^webhook-inbox: TypeError \(pass onError/)
  expect(text).toContain('error-log.test.ts')
  expect(text).not.toMatch(/4242|canary/)
})

it('shows the code of an error that has one', async () => {
  expect(await logOf(storeUnavailable('down'))).toMatch(/ERR_STORE_UNAVAILABLE/)
})

it('survives what is no error', async () => {
  expect(await logOf('canary')).not.toContain('canary')
  vi.restoreAllMocks()
  expect(await logOf(undefined)).toContain('no error (undefined)')
})

it('is silent where somebody listens', async () => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  const heard: unknown[] = []
  const store = withOperations(memoryStore(), { claim: failing(storeUnavailable('down')) })
  const onError = (error: unknown): void => void heard.push(error)
  const receiver = createReceiver({ provider: 'github', secret, store, onError })
  await receiver.receive(signed('{}'), undefined)
  expect(heard).toHaveLength(1)
  expect(log).not.toHaveBeenCalled()
})
