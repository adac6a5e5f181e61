import { runInNewContext } from 'node:vm'
import { createReceiver, type Handler, isPermanentError, memoryStore } from '@webhook-inbox/core'
import { expect, it } from 'vitest'
import { secret, signed } from './support.ts'

const nothing = undefined

function throwing(value: unknown): Handler {
  return () => {
    throw value
  }
}

const trap = (): never => {
  throw new Error('trap')
}

const values: readonly (readonly [string, unknown])[] = [
  ['undefined', nothing],
  ['a string', 'no'],
  ['a frozen error', Object.freeze(new Error('frozen'))],
  [
    'an error whose code cannot be read',
    Object.defineProperty(new Error('x'), 'code', { get: trap }),
  ],
  ['a proxy that answers nothing', new Proxy({}, { get: trap, has: trap, getPrototypeOf: trap })],
  ['an object without prototype', Object.create(null)],
]

it.each(values)('a handler that throws %s has failed, and is run again', async (_, thrown) => {
  const store = memoryStore()
  const heard: unknown[] = []
  const receiver = createReceiver({
    provider: 'github',
    secret,
    store,
    handler: throwing(thrown),
    onError: (error) => heard.push(error),
  })
  for (const attempt of [1, 2]) {
    const receipt = await receiver.receive(signed('{}'), undefined)
    if (receipt.status === 'claimed') throw new Error('A receipt of a handler is final.')
    expect([receipt.status, receipt.answer.status]).toEqual(['failed', 500])
    expect((await store.list()).records[0]).toMatchObject({ state: 'failed', attempt })
  }
  expect(heard).toHaveLength(2)
})

it('a route that failed with an error that cannot be read is settled all the same', async () => {
  const store = memoryStore()
  const receiver = createReceiver({ provider: 'github', secret, store })
  const receipt = await receiver.receive(signed('{}'), undefined)
  if (receipt.status !== 'claimed') throw new Error('The claim had to be granted.')
  const error = new Proxy({}, { get: trap, has: trap })
  expect((await receipt.settle({ status: 500, error })).state).toBe('failed')
})

it('recognises a permanent error of a second copy of the package', () => {
  expect(isPermanentError({ code: 'ERR_PERMANENT' })).toBe(true)
  expect(isPermanentError('ERR_PERMANENT')).toBe(false)
})

it.each([
  ['rejects', () => Promise.reject(new Error('hook'))],
  ['rejects in another realm', () => runInNewContext('Promise.reject(new Error("hook"))')],
  ['gives a thenable that throws', () => Object.defineProperty({}, 'then', { value: trap })],
  ['gives what cannot be read', () => Object.defineProperty({}, 'then', { get: trap })],
  ['throws', trap],
])('an observer or onError that %s changes no outcome', async (_, hook) => {
  const unhandled: unknown[] = []
  const listen = (error: unknown): void => void unhandled.push(error)
  process.on('unhandledRejection', listen)
  const store = memoryStore()
  let runs = 0
  const handler = (): void => {
    runs += 1
    if (runs === 1) throw new Error('first')
  }
  const receiver = createReceiver({
    provider: 'github',
    secret,
    store,
    handler,
    observer: hook,
    onError: hook,
  })
  const statuses = []
  for (let copy = 0; copy < 2; copy++)
    statuses.push((await receiver.receive(signed('{}'), undefined)).status)
  await new Promise((resolve) => setImmediate(resolve))
  process.off('unhandledRejection', listen)
  expect(statuses).toEqual(['failed', 'completed'])
  expect(unhandled).toEqual([])
})
