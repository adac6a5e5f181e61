/** A Redis Cluster of the tests: three primaries, each with a third of the slots. */
import { freePort } from './process.ts'
import { type OwnRedisServer, redisCli, startRedis } from './redis.ts'

export interface RedisCluster {
  readonly nodes: readonly OwnRedisServer[]
  /** What a client connects to. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[]
  stop(): Promise<void>
}

export async function startRedisCluster(): Promise<RedisCluster> {
  const nodes = await Promise.all(
    Array.from({ length: 3 }, async () =>
      startRedis({
        settings: {
          'cluster-enabled': 'yes',
          'cluster-config-file': 'nodes.conf',
          'cluster-node-timeout': '2000',
          // The default would be port + 10000, which may be taken or no port at all.
          'cluster-port': String(await freePort()),
          'cluster-require-full-coverage': 'no',
        },
      }),
    ),
  )
  const addresses = nodes.map(({ host, port }) => ({ host, port }))
  const [first] = nodes
  if (first === undefined) throw new Error('The cluster has no node.')
  await redisCli(
    first.port,
    '--cluster',
    'create',
    ...addresses.map(({ host, port }) => `${host}:${port}`),
    '--cluster-replicas',
    '0',
    '--cluster-yes',
  )
  // Every node has to know that all slots are served.
  for (const { port } of nodes) {
    while (!(await redisCli(port, 'cluster', 'info')).includes('cluster_state:ok'))
      await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return {
    nodes,
    addresses,
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()))
    },
  }
}
