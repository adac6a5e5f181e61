import {
  type DeliveryKey,
  type DeliveryRecord,
  type DeliveryState,
  type ListPage,
  type ListQuery,
  limitOption,
  optionError,
  type RetryResult,
  readListQuery,
  type StoreStats,
} from '@webhook-inbox/core'
import type { Connection } from './connection.ts'
import { parseText, readAttempts, unpackAbout, unpackKey, unpackText } from './encoding.ts'
import { placeOf, type Shard } from './key.ts'
import type { Lines } from './lines.ts'
import { bands, recordLua } from './record-lua.ts'
import { defineScript, listOf, type Script, textOf } from './script.ts'

/** The operator's side: looking, putting back to work, tidying up. */
export interface Operator {
  get(key: DeliveryKey): Promise<DeliveryRecord | undefined>
  /** @throws WebhookInboxError `ERR_OPTION` for a filter, limit or cursor that is none */
  list(query: ListQuery): Promise<ListPage>
  stats(): Promise<StoreStats>
  retry(key: DeliveryKey): Promise<RetryResult>
  purge(limit: number): Promise<number>
}

const getScript = defineScript(
  'get',
  `${recordLua}
local r = read(record(1))
if not r then return {} end
return describe(r)
`,
)

const retryScript = defineScript(
  'retry',
  `${recordLua}
local r = read(record(1))
if not r then return 'not_found' end
if r.state ~= 'd' and r.state ~= 'f' then return 'not_retryable' end
r.attempt, r.due = 0, now
change(r, r.bytes and 'p' or 'f')
leavePlace(r)
save(r)
return r.bytes and 'pending' .. joinOf(r) or 'needs_redelivery'
`,
)

// Newest first, from just before the record { created, id } on. Those that have gone by themselves are left out, also
// when their delivery has come again: until it is purged, an index may name a record that is not there any more.
const listScript = defineScript(
  'list',
  `${recordLua}
local asked = cjson.decode(ARGV[1])
local list, created, id, since, most = asked[1] == 'dead' and dead or open, asked[2], asked[3], asked[4], asked[5]
local found, rows, offset = {}, {}, 0
repeat
  found = redis.call('ZREVRANGEBYSCORE', list, digits(created), digits(since), 'WITHSCORES', 'LIMIT', offset, most)
  offset = offset + most
  for i = 1, #found, 2 do
    if #rows < most and (tonumber(found[i + 1]) < created or found[i] < id) then
      local r = read(keyOf(found[i]))
      rows[#rows + 1] = { found[i], found[i + 1], r and r.list == list and describe(r) or '' }
    end
  end
until #rows >= most or #found < 2 * most
return rows
`,
)

// A portion of the records that run without bytes, in no order, and where the next one begins.
const listRunningScript = defineScript(
  'list running',
  `${recordLua}
local found = redis.call('SSCAN', running, ARGV[1], 'COUNT', ARGV[2])
local rows = {}
for i, id in ipairs(found[2]) do
  local r = read(keyOf(id))
  local runs = r and r.list == running
  rows[i] = { id, runs and digits(r.created) or '0', runs and describe(r) or '' }
end
return { found[1], rows }
`,
)

const statsScript = defineScript(
  'stats',
  `${recordLua}
local function count(band, from, to) return redis.call('ZCOUNT', index, at(band, from), at(band, to)) end
local last = bandMs - 1
local oldest = ''
-- Records that have gone by themselves stay in the list until they are purged: some of them are passed over.
local found = redis.call('ZRANGE', open, 0, 99, 'WITHSCORES')
for i = 1, #found, 2 do
  local r = read(keyOf(found[i]))
  if r and r.list == open then
    oldest = digits(now - found[i + 1])
    break
  end
end
return {
  digits(count(${bands.pending}, 0, last) + count(${bands.linedPending}, 0, last) + count(${bands.unplacedPending}, 0, last)),
  digits(
    count(${bands.processing}, 0, last) + count(${bands.linedProcessing}, 0, last)
      + count(${bands.unplacedProcessing}, 0, last)
  ),
  digits(
    count(${bands.failed}, 0, last) + count(${bands.linedFailed}, 0, last) + count(${bands.unplacedFailed}, 0, last)
      + count(${bands.waiting}, now + 1, last)
  ),
  digits(count(${bands.dead}, now + 1, last)),
  digits(count(${bands.processing}, 0, now) + count(${bands.linedProcessing}, 0, now)), oldest,
}
`,
)

// The part of the statistics that is in no index: the records that run without bytes, a portion of them.
const countRunningScript = defineScript(
  'count running',
  `${recordLua}
local found = redis.call('SSCAN', running, ARGV[1], 'COUNT', ARGV[2])
local there, overdue, oldest = 0, 0, -1
for _, id in ipairs(found[2]) do
  local r = read(keyOf(id))
  if r and r.list == running then
    there, oldest = there + 1, math.max(oldest, now - r.created)
    if not isLive(r) then overdue = overdue + 1 end
  end
end
return { found[1], digits(there), digits(overdue), oldest >= 0 and digits(oldest) or '' }
`,
)

// Redis removes records by itself; what is left to do are their places in the indexes, and bytes that were kept.
const purgeScript = defineScript(
  'purge',
  `${recordLua}
local limit, purged, more = tonumber(ARGV[1]), 0, ''
local function over(band)
  local ids = redis.call('ZRANGEBYSCORE', index, at(band, 0), at(band, now), 'LIMIT', 0, limit)
  if #ids == limit then more = '1' end
  return ids
end
-- Leaves the places that a record has now: its delivery may have come again.
local function tidy(id, r)
  local list, place
  if r then list, place = listOf(r), placeOf(r) end
  if place then redis.call('ZADD', index, place, id) else redis.call('ZREM', index, id) end
  if list ~= open then redis.call('ZREM', open, id) end
  if list ~= dead then redis.call('ZREM', dead, id) end
end
for _, id in ipairs(over(${bands.kept})) do
  local r = read(keyOf(id))
  if r and r.state == 'c' and r.bytes then
    redis.call('HDEL', r.key, 'body', 'headers')
    r.bytes = false
  end
  tidy(id, r)
end
for _, band in ipairs({ ${bands.dead}, ${bands.waiting} }) do
  for _, id in ipairs(over(band)) do
    local r = read(keyOf(id))
    if r then
      tidy(id, r)
    elseif purged < limit then
      tidy(id)
      purged = purged + 1
    end
  end
end
return { digits(purged), more }
`,
)

// The same for a portion of those that run without bytes.
const purgeRunningScript = defineScript(
  'purge running',
  `${recordLua}
local limit = tonumber(ARGV[2])
local found, purged = redis.call('SSCAN', running, ARGV[1], 'COUNT', limit), 0
for _, id in ipairs(found[2]) do
  local r = read(keyOf(id))
  if r and r.list ~= running then redis.call('SREM', running, id) end
  if not r and purged < limit then
    redis.call('SREM', running, id)
    purged = purged + 1
  end
end
return { found[1], digits(purged) }
`,
)

// Longest list of one purging script, so that none keeps the server long.
const purgePortion = 500

const stateOf: Readonly<Record<string, DeliveryState>> = {
  p: 'pending',
  r: 'processing',
  c: 'completed',
  f: 'failed',
  d: 'dead',
}

/** A record in a list, with its place in the order of creation. */
interface Listed {
  readonly createdMs: number
  readonly id: string
  /** Undefined when it has gone by itself. */
  readonly record: DeliveryRecord | undefined
}

/** Position in the order of creation: everything that comes after it is older. */
interface Position {
  readonly createdMs: number
  readonly id: string
}

/** Records in the order of a list. */
interface Reader {
  head(): Promise<Listed | undefined>
  next(): void
}

// Records of one reply.
const portion = 100

export function createOperator(connection: Connection, lines: Lines): Operator {
  const { shards } = connection

  function shardOf(number: number): Shard {
    const shard = shards[number]
    if (shard === undefined) throw new RangeError('There is no such shard.')
    return shard
  }

  async function onRecord(script: Script, key: DeliveryKey): Promise<unknown> {
    const { shard: number, id } = placeOf(key, shards.length)
    const shard = shardOf(number)
    return connection.run(script, shard, [`${shard.base}${id}`], [])
  }

  /** Calls a script on all portions of what runs without bytes in a shard; hands out its answers. */
  async function* scanRunning(script: Script, shard: Shard): AsyncGenerator<readonly unknown[]> {
    let cursor = '0'
    do {
      const answer = await connection.run(script, shard, [], [cursor, String(portion)])
      const [next, ...rest] = listOf(answer)
      yield rest
      cursor = textOf(next)
    } while (cursor !== '0')
  }

  /** What runs without bytes in a shard, newest first. It is little at a time, so it is read as a whole. */
  function runningReader(shard: Shard, from: Position): Reader {
    let rows: Listed[] | undefined
    async function readAll(): Promise<Listed[]> {
      // A scan may show one twice.
      const found = new Map<string, Listed>()
      for await (const [listed] of scanRunning(listRunningScript, shard)) {
        for (const one of listOf(listed).map(readListed))
          if (isNewer(from, one)) found.set(one.id, one)
      }
      return [...found.values()].sort((a, b) => (isNewer(a, b) ? -1 : 1))
    }
    return {
      async head() {
        rows ??= await readAll()
        return rows[0]
      },
      next() {
        rows?.shift()
      },
    }
  }

  /** One list of one shard, newest first, read in portions. */
  function reader(shard: Shard, list: 'open' | 'dead', from: Position, sinceMs: number): Reader {
    let position = from
    let rows: Listed[] = []
    let ended = false
    return {
      async head() {
        if (rows.length === 0 && !ended) {
          const { createdMs, id } = position
          const asked = JSON.stringify([list, createdMs, id, sinceMs, portion])
          const found = listOf(await connection.run(listScript, shard, [], [asked]))
          rows = found.map(readListed)
          ended = rows.length < portion
          position = rows.at(-1) ?? position
        }
        return rows[0]
      },
      next() {
        rows.shift()
      },
    }
  }

  // Where the next purge of a shard goes on.
  const purgeCursors = shards.map(() => '0')

  /** Looks at a part of what runs without bytes, each time at the next one. */
  async function purgeRunning(index: number, shard: Shard, limit: number): Promise<number> {
    const asked = Math.min(limit, purgePortion)
    if (asked < 1) return 0
    const cursor = purgeCursors[index] ?? '0'
    const answer = await connection.run(purgeRunningScript, shard, [], [cursor, String(asked)])
    const [next, purged] = listOf(answer).map(textOf)
    purgeCursors[index] = next ?? '0'
    return Number(purged)
  }

  return {
    async get(key) {
      const row = listOf(await onRecord(getScript, key))
      if (row.length === 0) return undefined
      return { ...readRecord(row, key), attempts: readAttempts(textOf(row.at(-1))) }
    },

    async list(query) {
      const { limit } = readListQuery(query)
      const from = startOf(query)
      const sinceMs = query.since?.getTime() ?? 0
      const readers = shards.flatMap((shard) =>
        listsOf(query.state).map((list) =>
          list === 'running' ? runningReader(shard, from) : reader(shard, list, from, sinceMs),
        ),
      )
      const found: (Listed & { readonly record: DeliveryRecord })[] = []
      while (found.length <= limit) {
        const heads = await Promise.all(
          readers.map(async (one) => ({ one, listed: await one.head() })),
        )
        let newest: { readonly one: (typeof readers)[number]; readonly listed: Listed } | undefined
        for (const { one, listed } of heads) {
          if (listed !== undefined && (newest === undefined || isNewer(listed, newest.listed)))
            newest = { one, listed }
        }
        if (newest === undefined) break
        newest.one.next()
        const { record } = newest.listed
        if (record !== undefined && matches(record, query)) found.push({ ...newest.listed, record })
      }
      const page = found.slice(0, limit)
      const last = page.at(-1)
      const records = page.map(({ record }) => record)
      return found.length > limit && last !== undefined
        ? { records, next: `${last.createdMs}-${last.id}` }
        : { records }
    },

    async stats() {
      const states = { pending: 0, processing: 0, failed: 0, dead: 0 }
      let abandoned = 0
      let oldestMs: number | undefined
      const seen = (oldest: string | undefined) => {
        if (oldest !== '') oldestMs = Math.max(oldestMs ?? 0, Number(oldest))
      }
      await Promise.all(
        shards.map(async (shard) => {
          const row = listOf(await connection.run(statsScript, shard, [], [])).map(textOf)
          const [pending, processing, failed, dead, overdue, oldest] = row
          states.pending += Number(pending)
          states.processing += Number(processing)
          states.failed += Number(failed)
          states.dead += Number(dead)
          abandoned += Number(overdue)
          seen(oldest)
          for await (const counts of scanRunning(countRunningScript, shard)) {
            const [there, late, first] = counts.map(textOf)
            states.processing += Number(there)
            abandoned += Number(late)
            seen(first)
          }
        }),
      )
      return oldestMs === undefined
        ? { states, abandoned }
        : { states, abandoned, oldestUnfinishedMs: oldestMs }
    },

    async retry(key) {
      const [word, join] = textOf(await onRecord(retryScript, key)).split(' ')
      if (join !== undefined) await lines.join(placeOf(key, shards.length), join)
      switch (word) {
        case 'pending':
        case 'needs_redelivery':
        case 'not_found':
        case 'not_retryable':
          return word
        default:
          throw new TypeError('Redis answered a retry with something else than its result.')
      }
    },

    async purge(limit) {
      limitOption('purge', limit, 1_000_000)
      let purged = 0
      for (const [index, shard] of shards.entries()) {
        for (let hasMore = true; hasMore && purged < limit; ) {
          const asked = String(Math.min(limit - purged, purgePortion))
          const answer = listOf(await connection.run(purgeScript, shard, [], [asked]))
          const [count, more] = answer.map(textOf)
          purged += Number(count)
          hasMore = more === '1'
        }
        purged += await purgeRunning(index, shard, limit - purged)
      }
      return purged
    },
  }
}

type ListName = 'open' | 'dead' | 'running'

function listsOf(state: DeliveryState | undefined): readonly ListName[] {
  switch (state) {
    case undefined:
      return ['open', 'dead', 'running']
    case 'completed':
      throw optionError(
        'list: Redis keeps completed records only to recognise copies, and lists none. Ask for another state, or get() one record.',
      )
    case 'processing':
      return ['open', 'running']
    case 'dead':
      return ['dead']
    default:
      return ['open']
  }
}

function isNewer(a: Position, b: Position): boolean {
  return a.createdMs > b.createdMs || (a.createdMs === b.createdMs && a.id > b.id)
}

function matches(record: DeliveryRecord, { state, provider, event, since }: ListQuery): boolean {
  return (
    (since === undefined || record.createdAt >= since) &&
    (state === undefined || record.state === state) &&
    (provider === undefined || record.key.provider === provider) &&
    (event === undefined || record.event === event)
  )
}

function startOf({ until, cursor }: ListQuery): Position {
  // Every id is greater than the empty text: nothing of that very millisecond is listed.
  const newest = { createdMs: until?.getTime() ?? Number.MAX_SAFE_INTEGER, id: '' }
  if (cursor === undefined) return newest
  const [, createdMs, id = ''] = /^([0-9]{1,16})-([\w-]{22})$/.exec(String(cursor)) ?? []
  if (createdMs === undefined)
    throw optionError('list: "cursor" must be the "next" of a page that this store gave.')
  const position = { createdMs: Number(createdMs), id }
  return isNewer(newest, position) ? position : newest
}

function readListed(row: unknown): Listed {
  const [id, created, fields] = listOf(row)
  return {
    id: textOf(id),
    createdMs: Number(textOf(created)),
    record: Array.isArray(fields) ? readRecord(fields) : undefined,
  }
}

function readRecord(row: readonly unknown[], known?: DeliveryKey): DeliveryRecord {
  const [
    fingerprint = '',
    letter = '',
    attempt,
    fence,
    created,
    updated,
    due,
    purge,
    bytes,
    code = '',
    about = '',
    names = '',
    live,
  ] = row.map(textOf)
  const state = stateOf[letter]
  if (state === undefined) throw new TypeError('A record is in an unknown state.')
  const hasDue = state !== 'completed' && state !== 'dead'
  return {
    key: known ?? unpackKey(names),
    state,
    abandoned: state === 'processing' && live === '',
    ...unpackAbout(about),
    attempt: Number(attempt),
    fence: Number(fence),
    ...(fingerprint === '' ? {} : { fingerprint: unpackText(fingerprint) }),
    ...(code === '' ? {} : { code: parseText(code) }),
    hasPayload: bytes === '1',
    createdAt: new Date(Number(created)),
    updatedAt: new Date(Number(updated)),
    ...(hasDue ? { dueAt: new Date(Number(due)) } : {}),
    ...(purge === '0' ? {} : { purgeAt: new Date(Number(purge)) }),
  }
}
