/** A primary, a replica and one sentinel that fails over between them. */
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { requireProgram } from './install.ts'
import { freePort, serverFolder, startServer, unprivileged } from './process.ts'
import { answersPing, type OwnRedisServer, redisCli, startRedis } from './redis.ts'

export interface RedisReplication {
  readonly primary: OwnRedisServer
  readonly replica: OwnRedisServer
  stop(): Promise<void>
}

export interface RedisSentinel extends RedisReplication {
  /** For `new Redis({ sentinels, name })`. */
  readonly sentinels: { readonly host: string; readonly port: number }[]
  readonly name: string
  /** Resolves when the replica has become the primary. */
  failedOver(): Promise<void>
}

/** Starts a primary and a replica that has caught up with it. */
export async function startRedisReplication(): Promise<RedisReplication> {
  const primary = await startRedis()
  const replica = await startRedis({
    settings: { replicaof: `127.0.0.1 ${primary.port}` },
  })
  await until(async () =>
    (await redisCli(replica.port, 'info', 'replication')).includes('master_link_status:up'),
  )
  return {
    primary,
    replica,
    async stop() {
      await Promise.all([primary.stop(), replica.stop()])
    },
  }
}

/** Adds a sentinel that takes half a second of silence for a death. */
export async function startRedisSentinel(): Promise<RedisSentinel> {
  const name = 'inbox'
  const program = await requireProgram(['redis-server', 'valkey-server'], 'redis-server')
  const replication = await startRedisReplication()
  const { primary, replica } = replication
  const folder = serverFolder('sentinel')
  const port = await freePort()
  // A sentinel rewrites its configuration.
  const config = join(folder.path, 'sentinel.conf')
  writeFileSync(
    config,
    `bind 127.0.0.1
port ${port}
dir ${folder.path}
sentinel monitor ${name} 127.0.0.1 ${primary.port} 1
sentinel down-after-milliseconds ${name} 500
sentinel failover-timeout ${name} 5000
`,
  )
  const { uid, gid } = unprivileged
  if (uid !== undefined && gid !== undefined) chownSync(config, uid, gid)
  const sentinel = await startServer(program, [config, '--sentinel'], {
    folder: folder.path,
    stopSignal: 'TERM',
    isReady: () => answersPing(port),
  })
  await until(async () =>
    (await redisCli(port, 'sentinel', 'replicas', name)).includes(String(replica.port)),
  )
  return {
    ...replication,
    name,
    sentinels: [{ host: '127.0.0.1', port }],
    failedOver: () =>
      until(async () =>
        (await redisCli(replica.port, 'info', 'replication')).includes('role:master'),
      ),
    async stop() {
      await sentinel.stop()
      folder.remove()
      await replication.stop()
    },
  }
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  const deadlineMs = Date.now() + 30_000
  while (!(await holds())) {
    if (Date.now() > deadlineMs) throw new Error('The Redis servers have not found each other.')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
