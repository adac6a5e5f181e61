/** The newest event of an entity: one number, which Redis forgets by itself. */
import { hash } from 'node:crypto'
import type { Store } from '@webhook-inbox/core'
import type { Connection } from './connection.ts'
import { shardNumber } from './key.ts'
import { recordLua } from './record-lua.ts'
import { defineScript, textOf } from './script.ts'

const latestScript = defineScript(
  'latest',
  `${recordLua}
local known, occurred = redis.call('GET', record(1)), tonumber(ARGV[1])
if known and tonumber(known) > occurred then return '0' end
redis.call('SET', record(1), digits(occurred), 'PX', ARGV[2])
return '1'
`,
)

export function createLatest(
  connection: Connection,
): (entry: Parameters<Store['latest']>[0]) => Promise<boolean> {
  const { shards } = connection
  return async ({ entity, occurredAtMs, retentionMs }) => {
    const digest = hash('sha256', entity, 'base64url').slice(0, 22)
    const shard = shards[shardNumber(digest, shards.length)]
    if (shard === undefined) throw new RangeError('There is no such shard.')
    const args = [String(occurredAtMs), String(retentionMs)]
    const reply = await connection.run(
      latestScript,
      shard,
      [`${shard.base}latest:${digest}`],
      args,
      {
        replicate: true,
      },
    )
    return textOf(reply) === '1'
  }
}
