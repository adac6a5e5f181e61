import { redisStore } from '@webhook-inbox/redis'
import { describe, expect, it } from 'vitest'
import { errorOf, keyOf, openCluster, openRedis } from './support.ts'

/** Makes a store as plain JavaScript can: the compiler would refuse most of these. */
function make(options: unknown): unknown {
  return Reflect.apply(redisStore, undefined, [options])
}

const client = openRedis('redis://127.0.0.1:1', { lazyConnect: true })

describe('a wrong client', () => {
  it.each([
    ['nothing', undefined, 'is not an ioredis client'],
    ['a connection string', 'redis://localhost', 'is a text'],
    ['a promise of a client', Promise.resolve(client), 'is a promise'],
    [
      'a client of node-redis',
      { isOpen: false, sendCommand: () => {}, evalSha: () => {} },
      'is a node-redis client',
    ],
    ['a pipeline', client.pipeline(), 'is a pipeline'],
    ['an object', {}, 'is not an ioredis client'],
  ])('is refused at construction with the fix: %s', (_, wrong, message) => {
    expect(() => make({ client: wrong })).toThrow(message)
    expect(() => make({ client: wrong })).toThrow('new Redis(process.env.REDIS_URL)')
  })
})

describe('options', () => {
  it.each([
    [undefined, 'pass an object'],
    [{ client, prefx: 'a' }, 'Did you mean "prefix"?'],
    [{ client, prefix: '' }, '"prefix" must be'],
    [{ client, prefix: 'a{b}' }, '"prefix" must be'],
    [{ client, shards: 0 }, '"shards" must be'],
    [{ client, shards: 1.5 }, '"shards" must be'],
    [{ client, timeoutMs: '5' }, '"timeoutMs" must be'],
    [{ client, waitForReplicas: 1 }, '"waitForReplicas" must be an object'],
    [{ client, waitForReplicas: { count: 1 } }, '"waitForReplicas.timeoutMs" must be'],
    [{ client, waitForReplicas: { count: 0, timeoutMs: 5 } }, '"waitForReplicas.count" must be'],
    [{ client, waitForReplicas: { count: 1, timeoutMs: 1500 } }, 'below "timeoutMs" (1500)'],
    [{ client, onWarning: 'log' }, '"onWarning" must be a function'],
  ])('are checked at construction: %j', (options, message) => {
    expect(() => make(options)).toThrow(message)
    expect(() => make(options)).toThrow(expect.objectContaining({ code: 'ERR_OPTION' }))
  })

  it('take both kinds of client', () => {
    const cluster = openCluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true })
    expect(redisStore({ client: cluster }).name).toBe('redis')
    expect(redisStore({ client }).name).toBe('redis')
    cluster.disconnect()
  })
})

it('refuses a transaction by naming the stores that have them', async () => {
  const store = redisStore({ client })
  const hold = { key: keyOf('d-1'), token: 'token', fence: 1 }
  const retentionMs = 1000
  const errors = await Promise.all([
    errorOf(store.complete(hold, { retentionMs }, {})),
    errorOf(store.fail(hold, { code: 'x', retentionMs, dead: true }, client.multi())),
  ])
  for (const { code, message } of errors) {
    expect(code).toBe('ERR_TRANSACTION')
    expect(message).toContain('postgresStore() or sqliteStore()')
  }
})

it('answers nothing after it was closed, and leaves the client open', async () => {
  const store = redisStore({ client })
  await store.close()
  await store.close()
  const error = await errorOf(store.get(keyOf('d-1')))
  expect(error.code).toBe('ERR_STORE_UNAVAILABLE')
  expect(error.message).toContain('closed')
  expect(client.status).toBe('wait')
})
