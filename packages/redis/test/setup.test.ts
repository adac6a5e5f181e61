import { type RedisWarning, redisStore } from '@webhook-inbox/redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OwnRedisServer, startRedis } from '../../../test/services/redis.ts'
import {
  type RedisReplication,
  startRedisReplication,
} from '../../../test/services/redis-sentinel.ts'
import type { RedisClient } from '../src/client.ts'
import { claimOne, entryOf, errorOf, majors, newPrefix, openRedis } from './support.ts'

async function setUp(
  client: ReturnType<typeof openRedis>,
  prefix = newPrefix(),
): Promise<readonly RedisWarning[]> {
  const warnings: RedisWarning[] = []
  const store = redisStore({ client, prefix, onWarning: (warning) => warnings.push(warning) })
  await store.setup()
  await store.setup()
  client.disconnect()
  return warnings
}

/** The client of a server that says to be of another version. */
function reporting<Client extends RedisClient>(client: Client, version: string): Client {
  return new Proxy(client, {
    get(target, name) {
      if (name !== 'pipeline') return Reflect.get(target, name)
      return (commands: unknown[][]) => ({
        async exec() {
          const answers = await target.pipeline(commands).exec()
          return (answers ?? []).map(([error, reply]) => [
            error,
            Buffer.isBuffer(reply) && reply.includes('redis_version:')
              ? Buffer.from(`${reply}`.replace(/redis_version:\S+/, `redis_version:${version}`))
              : reply,
          ])
        },
      })
    },
  })
}

describe('setup', () => {
  let server: OwnRedisServer
  beforeAll(async () => {
    server = await startRedis({ settings: { appendonly: 'yes' } })
  })
  afterAll(() => server?.stop())

  it.each(majors)('leaves nothing but the number of shards behind, on $name', async ({ open }) => {
    const client = open(server.url, { lazyConnect: true })
    const prefix = newPrefix()
    const warnings: RedisWarning[] = []
    const store = redisStore({ client, prefix, onWarning: (warning) => warnings.push(warning) })
    await Promise.all([store.setup(), store.setup()])
    await store.setup()
    expect(warnings).toEqual([])
    const left = (await client.keys(`*${prefix}*`)).filter((name) => !name.endsWith('}:fence'))
    expect(left).toEqual([`${prefix}:shards`])
    client.disconnect()
  })

  it('refuses another number of shards than the data has, and names it', async () => {
    const client = openRedis(server.url)
    const prefix = newPrefix()
    await redisStore({ client, prefix, shards: 7 }).setup()
    const other = redisStore({ client, prefix })
    const error = await errorOf(other.setup())
    expect(error.code).toBe('ERR_STORE_SETUP')
    expect(error.message).toContain('"shards": 7')
    client.disconnect()
  })

  it('says that Redis may remove records, and what that means', async () => {
    const client = openRedis(server.url)
    await client.config('SET', 'maxmemory', '1gb')
    for (const [policy, what] of [
      ['allkeys-lru', 'any record'],
      ['volatile-ttl', 'records of settled deliveries'],
    ] as const) {
      await client.config('SET', 'maxmemory-policy', policy)
      const warnings = await setUp(client.duplicate())
      expect(warnings.map(({ code }) => code)).toEqual(['eviction'])
      expect(warnings[0]?.message).toContain(`Redis may remove ${what}`)
      expect(warnings[0]?.message).toContain('noeviction')
      expect(warnings[0]?.message).toContain('runs again')
    }
    await client.config('SET', 'maxmemory-policy', 'noeviction')
    expect(await setUp(client.duplicate())).toEqual([])
    await client.config('SET', 'maxmemory', '0')
    client.disconnect()
  })

  it('says what a restart loses', async () => {
    const client = openRedis(server.url)
    await client.config('SET', 'appendonly', 'no')
    const [memory] = await setUp(client.duplicate())
    expect(memory?.code).toBe('persistence')
    expect(memory?.message).toContain('a restart loses all records')
    await client.config('SET', 'save', '3600 1')
    const [snapshots] = await setUp(client.duplicate())
    expect(snapshots?.message).toContain('a crash loses what came after the last one')
    await client.config('SET', 'save', '')
    await client.config('SET', 'appendonly', 'yes')
    client.disconnect()
  })

  it.each([
    ['5.0.14', false],
    ['6.0.20', false],
    ['6.2.0', true],
    ['7.2.4', true],
    ['10.0.0', true],
  ])('asks for Redis 6.2 or newer: %s', async (version, isEnough) => {
    const client = openRedis(server.url)
    const prefix = newPrefix()
    const store = redisStore({ client: reporting(client, version), prefix })
    if (isEnough) {
      await store.setup()
    } else {
      const error = await errorOf(store.setup())
      expect(error.code).toBe('ERR_STORE_SETUP')
      expect(error.message).toContain(`this is Redis ${version}; the store needs 6.2 or newer`)
      expect(await client.keys(`*${prefix}*`)).toEqual([])
    }
    client.disconnect()
  })

  it('says what it could not check where the server forbids the commands', async () => {
    const admin = openRedis(server.url)
    const rights = ['on', '>secret', '~*', '+@all', '-@admin', '-config']
    await admin.call('ACL', ['SETUSER', 'managed', ...rights, '-info'])
    // A client may not even check whether the server is ready.
    const client = openRedis(server.url, {
      username: 'managed',
      password: 'secret',
      enableReadyCheck: false,
    })
    const [unchecked] = await setUp(client)
    expect(unchecked?.code).toBe('unchecked')
    expect(unchecked?.message).toContain('could not be checked')

    await admin.config('SET', 'appendonly', 'no')
    await admin.call('ACL', ['SETUSER', 'managed', '+info'])
    const [persistence] = await setUp(
      openRedis(server.url, { username: 'managed', password: 'secret' }),
    )
    expect(persistence?.message).toContain('it could not be checked whether it saves snapshots')
    await admin.config('SET', 'appendonly', 'yes')
    admin.disconnect()
  })

  it('names what a user lacks who may not run scripts', async () => {
    const admin = openRedis(server.url)
    await admin.call('ACL', [
      'SETUSER',
      'scriptless',
      'on',
      '>secret',
      '~*',
      '+@all',
      '-@scripting',
    ])
    const client = openRedis(server.url, { username: 'scriptless', password: 'secret' })
    const error = await errorOf(redisStore({ client, prefix: newPrefix() }).setup())
    expect(error.message).toContain('may not run the command')
    client.disconnect()
    admin.disconnect()
  })

  it('warns the process when nobody else listens', async () => {
    const client = openRedis(server.url)
    await client.config('SET', 'appendonly', 'no')
    const heard = new Promise<Error>((resolve) => process.once('warning', resolve))
    await redisStore({ client, prefix: newPrefix() }).setup()
    expect(await heard).toMatchObject({
      name: 'WebhookInboxWarning',
      code: 'WEBHOOK_INBOX_REDIS_PERSISTENCE',
    })
    await client.config('SET', 'appendonly', 'yes')
    client.disconnect()
  })
})

describe('a read-only replica', () => {
  let servers: RedisReplication
  beforeAll(async () => {
    servers = await startRedisReplication()
  })
  afterAll(() => servers?.stop())

  it('is refused by setup, and answers calls as unavailable', async () => {
    const client = openRedis(servers.replica.url)
    const store = redisStore({ client, prefix: newPrefix() })
    const error = await errorOf(store.setup())
    expect(error.code).toBe('ERR_STORE_SETUP')
    expect(error.message).toContain('read-only replica')
    expect(error.message).toContain('sentinels')
    const refused = await errorOf(claimOne(store, entryOf('d-1')))
    expect(refused.code).toBe('ERR_STORE_UNAVAILABLE')
    expect(refused.message).toContain('read-only replica')
    client.disconnect()
  })

  it('confirms claims when they are to wait for it', async () => {
    const { primary, replica } = servers
    const waitForReplicas = { count: 1, timeoutMs: 1000 }
    for (const { open } of majors) {
      const client = open(primary.url)
      const store = redisStore({ client, prefix: newPrefix(), waitForReplicas })
      await client.script('FLUSH')
      expect((await claimOne(store, entryOf('d-1'))).status).toBe('claimed')
      expect((await claimOne(store, entryOf('d-2'))).status).toBe('claimed')
      const asked = entryOf('d-3')
      const twice = { ...waitForReplicas, count: 2 }
      const strict = redisStore({ client, prefix: newPrefix(), waitForReplicas: twice })
      const error = await errorOf(claimOne(strict, asked))
      expect(error.code).toBe('ERR_STORE_UNAVAILABLE')
      expect(error.message).toContain('Only 1 of 2 replicas')
      client.disconnect()
    }
    const reader = openRedis(replica.url)
    expect((await reader.keys('*:fence')).length).toBeGreaterThan(0)
    reader.disconnect()
  })
})
