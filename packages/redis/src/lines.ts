/**
 * Lines: of the records that wait in one, the first alone may be taken, and only while none of them runs.
 *
 * A line may be in another slot than its records, so no script sees both. The record decides what it is and whether it
 * runs; the line decides whose turn it is, and only one taker at a time works on it, under a lock that ends by itself.
 * A taker that was slower than its lock finds so before it hands out what it got, and gives that back.
 *
 * - lines: of the lines of a shard, when each has to be looked at.
 * - line:…: the records of one, by their places.
 * - turn:…: its lock, and the record that was taken last.
 * - places: the last place that was given.
 */
import { hash } from 'node:crypto'
import type { TakenDelivery } from '@webhook-inbox/core'
import type { Connection } from './connection.ts'
import { type Place, type Shard, shardNumber } from './key.ts'
import { bands, recordLua } from './record-lua.ts'
import { defineScript, listOf, type Script, textOf } from './script.ts'
import type { TakeOptions } from './take.ts'
import { readTaken } from './taken.ts'

/** The bands of records that are to be put into their lines. */
export const unplaced: readonly number[] = [
  bands.unplacedPending,
  bands.unplacedFailed,
  bands.unplacedProcessing,
]

/** Whoever stores a record puts it into its line at once; what is older was left behind. */
export const placedWithinMs = 2000

/** What the scripts of lines share. */
export const linesLua: string = `
local base = string.sub(index, 1, -6)
local linesKey, placesKey = base .. 'lines', base .. 'places'
local function lineKey(digest) return base .. 'line:' .. digest end
local function turnKey(digest) return base .. 'turn:' .. digest end
local function isLocked(digest) return tonumber(redis.call('HGET', turnKey(digest), 'until') or '0') > now end
local function look(digest, ms) redis.call('ZADD', linesKey, digits(ms), digest) end
-- Whoever has the lock looks once more, when it is to be looked at.
local function wake(digest)
  if isLocked(digest) then redis.call('HSET', turnKey(digest), 'again', '1') else look(digest, now) end
end
`

function lineScript(name: string, text: string): Script {
  return defineScript(name, `${recordLua}${linesLua}${text}`)
}

const joinScript = lineScript(
  'join line',
  `
local digest, member, wanted = ARGV[1], ARGV[2], tonumber(ARGV[3])
local place = tonumber(redis.call('ZSCORE', lineKey(digest), member) or '0')
if place == 0 then
  place = wanted
  if place == 0 then
    place = math.max(nowUs, tonumber(redis.call('GET', placesKey) or '0') + 1)
    redis.call('SET', placesKey, digits(place))
  end
  redis.call('ZADD', lineKey(digest), digits(place), member)
end
wake(digest)
return digits(place)
`,
)

const placeScript = lineScript(
  'note place',
  `
local r = read(record(1))
if r and r.line == ARGV[1] and r.state ~= 'c' and not (r.place and r.place > 0) then
  r.place = tonumber(ARGV[2])
  save(r)
end
return 'ok'
`,
)

const wakeScript = lineScript(
  'wake line',
  `
if redis.call('ZSCORE', linesKey, ARGV[1]) then wake(ARGV[1]) end
return 'ok'
`,
)

const leftoversScript = lineScript(
  'find what is in no line',
  `
local found = {}
for _, band in ipairs({ ${unplaced.join(', ')} }) do
  local ids = redis.call('ZRANGEBYSCORE', index, at(band, 0), at(band, now - ${placedWithinMs}), 'LIMIT', 0, 100)
  for _, id in ipairs(ids) do
    local r = read(keyOf(id))
    local join = r and joinOf(r) or ''
    if join == '' then redis.call('ZREM', index, id) else found[#found + 1] = { id, string.sub(join, 2) } end
  end
end
return found
`,
)

const membersShown = 10

const pickScript = lineScript(
  'pick lines',
  `
local picked = {}
for _, digest in ipairs(redis.call('ZRANGEBYSCORE', linesKey, '-inf', digits(now), 'LIMIT', 0, ARGV[1])) do
  local untilMs = now + ARGV[3]
  look(digest, untilMs)
  redis.call('HSET', turnKey(digest), 'lock', ARGV[2], 'until', digits(untilMs))
  picked[#picked + 1] = {
    digest, redis.call('HGET', turnKey(digest), 'current') or '',
    redis.call('ZRANGE', lineKey(digest), 0, ${membersShown - 1}, 'WITHSCORES'),
  }
end
return picked
`,
)

// How long a record of the line runs for sure; nothing when it does not.
const currentScript = lineScript(
  'look at current',
  `
local r = read(record(1))
return r and r.line == ARGV[1] and isLive(r) and digits(r.due - now) or '0'
`,
)

const turnScript = lineScript(
  'take turn',
  `
local line, place, token, lease, most, deadRetention = unpack(ARGV)
local r = read(record(1))
if not r or r.state == 'c' or r.line ~= line then return { 'gone' } end
if r.state == 'd' then
  leavePlace(r)
  save(r)
  return { 'dead' }
end
if r.due > now then return { 'wait', digits(r.due - now) } end
most = tonumber(most)
r.place = tonumber(place)
if most > 0 and r.attempt >= most and r.state ~= 'p' then
  noteLostOwner(r)
  bury(r, '"attempts_exhausted"', tonumber(deadRetention))
  leavePlace(r)
  save(r)
  return { 'dead' }
end
grant(r, token, tonumber(lease), 1)
save(r)
local bytes = redis.call('HMGET', r.key, 'body', 'headers')
return { 'taken', digits(r.fence), digits(r.attempt), digits(r.created), r.names, r.about, bytes[1], bytes[2], r.log or '' }
`,
)

// ARGV: the line, the lock, the record taken, when to look again (-1: when the line is empty, never), and who has left.
const finishScript = lineScript(
  'finish turn',
  `
local digest, lock, current, dueIn = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local turn = turnKey(digest)
if redis.call('HGET', turn, 'lock') ~= lock then return 'lost' end
for i = 5, #ARGV do redis.call('ZREM', lineKey(digest), ARGV[i]) end
local again = redis.call('HGET', turn, 'again')
redis.call('HDEL', turn, 'lock', 'until', 'again')
if redis.call('EXISTS', lineKey(digest)) == 0 then
  redis.call('DEL', turn)
  redis.call('ZREM', linesKey, digest)
  return 'ok'
end
redis.call('HSET', turn, 'current', current)
look(digest, (again or dueIn < 0) and now or now + dueIn)
return 'ok'
`,
)

// Longer than the three calls of a turn may take together.
const lockCalls = 4
// How soon a line that a dead record stops is looked at again, when nothing moves in it.
const stoppedMs = 60_000

/** The name of a line: its shard is found by it. */
export function lineOf(order: string): string {
  return hash('sha256', order, 'base64url').slice(0, 22)
}

export interface Lines {
  /** Puts a record into the line that a script has named: the line, `@`, and the place that it has had. */
  join(place: Place, join: string): Promise<void>
  /** Says that something has moved in a line. Never rejects: the line is looked at again in any case. */
  wake(line: string): Promise<void>
  /** Does `then` with the outcome of `work`, one after another for each line, in the order of the calls. */
  inTurn<T, Result>(
    line: string,
    work: Promise<T>,
    then: (value: T) => Promise<Result>,
  ): Promise<Result>
  placeLeftovers(shard: Shard): Promise<void>
  /** Takes the heads of the lines of a shard that are due. */
  take(shard: Shard, limit: number, options: TakeOptions): Promise<readonly TakenDelivery[]>
}

export function createLines(
  connection: Connection,
  giveBack: (taken: TakenDelivery) => Promise<unknown>,
): Lines {
  const { shards, timeoutMs } = connection
  const tails = new Map<string, Promise<unknown>>()

  function shardOf(number: number): Shard {
    const shard = shards[number]
    if (shard === undefined) throw new RangeError('There is no such shard.')
    return shard
  }

  function shardOfLine(line: string): Shard {
    return shardOf(shardNumber(line, shards.length))
  }

  function onMember(script: Script, member: string, args: readonly string[]): Promise<unknown> {
    const cut = member.indexOf(':')
    const shard = shardOf(Number(member.slice(0, cut)))
    return connection.run(script, shard, [`${shard.base}${member.slice(cut + 1)}`], args)
  }

  async function join({ shard, id }: { shard: number; id: string }, text: string): Promise<void> {
    const [line = '', before = '0'] = text.split('@')
    const member = `${shard}:${id}`
    const place = textOf(
      await connection.run(joinScript, shardOfLine(line), [], [line, member, before], {
        replicate: true,
      }),
    )
    // A hint for the index only: what is lost here a taker finds.
    onMember(placeScript, member, [line, place]).catch(() => {})
  }

  async function takeTurn(
    shard: Shard,
    lock: string,
    picked: unknown,
    options: TakeOptions,
  ): Promise<TakenDelivery | undefined> {
    const [digest, current, shown] = listOf(picked)
    const line = textOf(digest)
    const members = listOf(shown).map(textOf)
    let last = textOf(current)
    let taken: TakenDelivery | undefined
    const left: string[] = []

    async function finish(dueInMs: number): Promise<TakenDelivery | undefined> {
      const args = [line, lock, last, String(dueInMs), ...left]
      const word = textOf(await connection.run(finishScript, shard, [], args))
      if (word === 'ok' || taken === undefined) return taken
      // Somebody else has the line by now.
      await giveBack(taken)
      return undefined
    }

    if (last !== '' && last !== members[0]) {
      const liveMs = Number(textOf(await onMember(currentScript, last, [line])))
      if (liveMs > 0) return finish(liveMs)
    }
    for (let index = 0; index < members.length; index += 2) {
      const member = members[index] ?? ''
      const token = crypto.randomUUID().replaceAll('-', '')
      const { leaseMs, maxAttempts = 0, deadRetentionMs, deadBlocksOrder } = options
      const reply = listOf(
        await onMember(turnScript, member, [
          line,
          members[index + 1] ?? '0',
          token,
          String(leaseMs),
          String(maxAttempts),
          String(deadRetentionMs),
        ]),
      )
      const [word, ...rest] = reply
      switch (textOf(word)) {
        case 'taken':
          last = member
          taken = readTaken(rest, token, leaseMs)
          return finish(leaseMs)
        case 'wait':
          return finish(Number(textOf(rest[0])))
        case 'dead':
          if (deadBlocksOrder === true) return finish(stoppedMs)
          left.push(member)
          break
        default:
          left.push(member)
      }
    }
    return finish(members.length === 2 * membersShown ? 0 : -1)
  }

  return {
    join,

    async wake(line) {
      await connection.run(wakeScript, shardOfLine(line), [], [line]).catch(() => {})
    },

    async inTurn(line, work, then) {
      const before = tails.get(line)
      const own = (async () => {
        const value = await work
        await before?.catch(() => {})
        return then(value)
      })()
      tails.set(line, own)
      try {
        return await own
      } finally {
        if (tails.get(line) === own) tails.delete(line)
      }
    },

    async placeLeftovers(shard) {
      const found = listOf(await connection.run(leftoversScript, shard, [], []))
      await Promise.all(
        found.map(async (row) => {
          const [id, text] = listOf(row).map(textOf)
          if (id !== undefined && text !== undefined) await join({ shard: shard.number, id }, text)
        }),
      )
    },

    async take(shard, limit, options) {
      const lock = crypto.randomUUID()
      const args = [String(limit), lock, String(lockCalls * timeoutMs)]
      const picked = listOf(await connection.run(pickScript, shard, [], args))
      const turns = await Promise.allSettled(
        picked.map((one) => takeTurn(shard, lock, one, options)),
      )
      // What was taken is not thrown away for what failed beside it.
      return turns.flatMap((turn) =>
        turn.status === 'fulfilled' && turn.value !== undefined ? [turn.value] : [],
      )
    },
  }
}
