import { limitOption, type Store, type TakenDelivery } from '@webhook-inbox/core'
import type { Connection } from './connection.ts'
import type { Shard } from './key.ts'
import { type Lines, linesLua, placedWithinMs, unplaced } from './lines.ts'
import { bands, recordLua } from './record-lua.ts'
import { defineScript, listOf, textOf } from './script.ts'
import { readTaken } from './taken.ts'

export type TakeOptions = Parameters<Store['take']>[0]

export type Take = (options: TakeOptions) => Promise<readonly TakenDelivery[]>

// Records of one reply: their bytes travel with them.
const longestReply = 100

const workable = [bands.pending, bands.failed, bands.processing]

const countDueScript = defineScript(
  'count due',
  `${recordLua}${linesLua}
local count = 0
for _, band in ipairs({ ${workable.join(', ')} }) do
  count = count + redis.call('ZCOUNT', index, at(band, 0), at(band, now))
end
local unplaced = 0
for _, band in ipairs({ ${unplaced.join(', ')} }) do
  unplaced = unplaced + redis.call('ZCOUNT', index, at(band, 0), at(band, now - ${placedWithinMs}))
end
return { digits(count), digits(redis.call('ZCOUNT', linesKey, '-inf', digits(now))), digits(unplaced) }
`,
)

// Whatever a taker gets it gets here, in one step: no two takers get the same.
const takeScript = defineScript(
  'take',
  `${recordLua}
local asked = cjson.decode(ARGV[1])
local limit, lease, most, deadRetention = asked[1], asked[2], asked[3], asked[4]
local due = {}
for _, band in ipairs({ ${workable.join(', ')} }) do
  local found = redis.call('ZRANGEBYSCORE', index, at(band, 0), at(band, now), 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #found, 2 do due[#due + 1] = { found[i], found[i + 1] - at(band, 0) } end
end
table.sort(due, function(a, b)
  if a[2] ~= b[2] then return a[2] < b[2] end
  return a[1] < b[1]
end)
local taken = {}
for i = 1, math.min(#due, limit) do
  local r = read(keyOf(due[i][1]))
  if not r then
    redis.call('ZREM', index, due[i][1])
    redis.call('ZREM', open, due[i][1])
  elseif most > 0 and r.attempt >= most and r.state ~= 'p' then
    noteLostOwner(r)
    bury(r, '"attempts_exhausted"', deadRetention)
    save(r)
  else
    local n = #taken + 1
    grant(r, ARGV[1 + n], lease, limit)
    save(r)
    local bytes = redis.call('HMGET', r.key, 'body', 'headers')
    taken[n] = { digits(r.fence), digits(r.attempt), digits(r.created), r.names, r.about, bytes[1], bytes[2], r.log or '' }
  end
end
return taken
`,
)

export function createTake(connection: Connection, lines: Lines): Take {
  const { shards } = connection
  let firstShard = 0

  async function takeFrom(
    shard: Shard,
    limit: number,
    { leaseMs, maxAttempts = 0, deadRetentionMs }: TakeOptions,
  ): Promise<readonly TakenDelivery[]> {
    const tokens = Array.from({ length: limit }, () => crypto.randomUUID().replaceAll('-', ''))
    const asked = JSON.stringify([limit, leaseMs, maxAttempts, deadRetentionMs])
    const args = [asked, ...tokens]
    const reply = await connection.run(takeScript, shard, [], args, { replicate: true })
    return listOf(reply).map((row, index) => readTaken(row, tokens[index] ?? '', leaseMs))
  }

  return async (options) => {
    limitOption('take', options.limit, 1000)
    // Shards take turns in being asked first.
    firstShard = (firstShard + 1) % shards.length
    const inTurn = [...shards.slice(firstShard), ...shards.slice(0, firstShard)]
    const counts = await whatCame(
      inTurn.map(async (shard) =>
        listOf(await connection.run(countDueScript, shard, [], [])).map((n) => Number(textOf(n))),
      ),
    )
    // What was stored by somebody who died before it was in its line.
    await Promise.all(
      inTurn.map(async (shard, index) => {
        if ((counts[index]?.[2] ?? 0) > 0) await lines.placeLeftovers(shard)
      }),
    )
    const free = counts.map((count) => count?.[0] ?? 0)
    const lined = counts.map((count) => count?.[1] ?? 0)
    const shares = share([...free, ...lined], options.limit)
    const hauls = await whatCame([
      ...inTurn.map(async (shard, index) => {
        const limit = Math.min(shares[index] ?? 0, longestReply)
        return limit === 0 ? [] : takeFrom(shard, limit, options)
      }),
      ...inTurn.map(async (shard, index) => {
        const limit = Math.min(shares[inTurn.length + index] ?? 0, longestReply)
        return limit === 0 ? [] : lines.take(shard, limit, options)
      }),
    ])
    return hauls.flatMap((haul) => haul ?? [])
  }
}

// A shard that cannot be reached keeps nobody from the others, and what was taken is not thrown away.
async function whatCame<T>(calls: readonly Promise<T>[]): Promise<readonly (T | undefined)[]> {
  const ended = await Promise.allSettled(calls)
  const broken = ended.find((call) => call.status === 'rejected')
  if (broken !== undefined && ended.every((call) => call.status === 'rejected')) throw broken.reason
  return ended.map((call) => (call.status === 'fulfilled' ? call.value : undefined))
}

/** Deals out `limit` over the shards, as evenly as what is due there allows. */
function share(counts: readonly number[], limit: number): readonly number[] {
  const shares = counts.map(() => 0)
  let left = Math.min(
    limit,
    counts.reduce((sum, count) => sum + count, 0),
  )
  while (left > 0) {
    for (const [index, count] of counts.entries()) {
      const given = shares[index] ?? 0
      if (left === 0 || given >= count) continue
      shares[index] = given + 1
      left -= 1
    }
  }
  return shares
}
