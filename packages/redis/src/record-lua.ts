/**
 * What the scripts share: a delivery's record, and the indexes of its shard. The scripts get the keys of the shard, then
 * the records.
 *
 * A record is a string as long as there are no bytes with it, and otherwise a hash with the fields `record`, `body` and
 * `headers` (the request) and `result`. Redis removes it when its time is over; work whose bytes are stored has no time.
 * It begins with a letter for its state, the time of its last change and its fence: 14 bytes that a script knows. The
 * rest of a new one is made by the claimer (packNew), so that a script has little to do. Of a completed one is kept what
 * tells it from others.
 *
 * - running: a set of the records that run without bytes. They come and go all the time, and are few at a time.
 * - open: the other unfinished records by time of creation; dead: the dead ones.
 * - index: those of open and dead, and completed ones whose bytes are kept, in bands of one sorted set: the band tells
 *   the state, the place in it the time at which something is due.
 * - fence: the last one that may have been given.
 *
 * A completed record whose bytes are gone is in no index.
 *
 * A record that waits in a line names it, and its place there; a place that is negative, or none yet, tells that it
 * has to be put there (lines.ts).
 */
import { idLength, shardKeys } from './key.ts'
import { unfinishedFields } from './new-record.ts'

/** Bands of the index, and what the time in them means. */
export const bands = {
  /** With bytes: when a worker may take it. */
  pending: 0,
  /** With bytes: the next attempt. */
  failed: 1,
  /** With bytes: the end of the lease. */
  processing: 2,
  /** Failed without bytes: when it goes. */
  waiting: 3,
  /** When it goes. */
  dead: 4,
  /** Completed: when its bytes go. */
  kept: 5,
  /** In its place in a line, which decides when it is taken: as the first three. */
  linedPending: 6,
  linedFailed: 7,
  linedProcessing: 8,
  /** To be put into a line, which may be in another slot: when it was changed last. */
  unplacedPending: 9,
  unplacedFailed: 10,
  unplacedProcessing: 11,
} as const

/** Milliseconds of one band: until the year 2109. */
export const bandMs: number = 2 ** 42

// Lua knows the separator by its number.
const fieldPattern = `^${Array.from({ length: unfinishedFields }, () => '([^\\31]*)').join('\\31')}`

// Redis changes nothing of a script that meets full memory at its first write. Removing comes first where a record
// gets smaller: completing goes on when memory is full.
export const recordLua: string = `
local ${shardKeys.join(', ')} = unpack(KEYS, 1, ${shardKeys.length})
local function record(i) return KEYS[${shardKeys.length} + i] end
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local now = math.floor(nowUs / 1000)
local bandMs = ${bandMs}

-- tostring() would lose digits.
local function digits(number) return string.format('%.0f', number) end

local function idOf(key) return string.sub(key, -${idLength}) end
local function keyOf(id) return string.sub(index, 1, -6) .. id end

local function at(band, ms) return band * bandMs + math.max(0, math.min(ms, bandMs - 1)) end

local function isLive(r) return r.state == 'r' and r.due > now end

-- Which of running, open and dead a record is in; nil when it is in none.
local function listOf(r)
  if r.state == 'c' then return nil end
  if r.state == 'd' then return dead end
  return r.state == 'r' and not r.bytes and running or open
end

local function head(state, updated, number) return state .. struct.pack('>I6I7', updated, number) end

-- What is left of a token when its record is completed: the fence alone nearly tells who did it.
local function markOf(token) return tonumber(string.sub(redis.sha1hex(token), 1, 8), 16) end

-- A completed record has a fingerprint that is a SHA-256 in hex as 32 bytes. Other texts begin with a quote, and are
-- never as long as that (packText).
local printWords = '>I4I4I4I4I4I4I4I4'
local function packPrint(text)
  if #text ~= 64 or string.byte(text) == 34 then return text end
  local words = {}
  for i = 1, 8 do words[i] = tonumber(string.sub(text, 8 * i - 7, 8 * i), 16) end
  return struct.pack(printWords, unpack(words))
end
local function unpackPrint(packed)
  if #packed ~= 32 then return packed end
  return string.format('%08x%08x%08x%08x%08x%08x%08x%08x', struct.unpack(printWords, packed))
end

-- The fields of an unfinished record, from a place on: texts, of which those that are not there are empty.
local fields = '${fieldPattern}'
local function cut(packed, from) return string.match(packed, fields, from) end
local function there(text) return text ~= '' and text end

-- The record that a text holds; bytes tells whether it was in a hash.
local function parse(key, packed, isHash)
  local state, updated, number = string.sub(packed, 1, 1), struct.unpack('>I6I7', packed, 2)
  local r = { key = key, kind = isHash and 'hash' or 'string', state = state, updated = updated, fence = number }
  if state == 'c' then
    local ended, attempt, age, keep, about = cmsgpack.unpack_limit(packed, 4, 18)
    r.mark = struct.unpack('>I4', packed, 15)
    r.fingerprint = ended > 0 and unpackPrint(string.sub(packed, ended + 1))
    r.attempt, r.created, r.keep, r.about = attempt, updated - age, keep, about
    r.settledBy, r.purge = 'complete', updated + keep
    r.bytes = isHash and redis.call('HEXISTS', key, 'body') == 1
    return r
  end
  local attempt, age, keep, due, purge, code, settledBy, place, line, log, about, names, token, print = cut(packed, 15)
  r.attempt, r.created, r.keep, r.due = tonumber(attempt), updated - age, tonumber(keep), updated + due
  r.purge = purge ~= '' and updated + purge or 0
  r.code, r.settledBy, r.place, r.line, r.log = there(code), there(settledBy), tonumber(place), there(line), there(log)
  r.about, r.names, r.token, r.fingerprint = about, names, token, there(print)
  r.bytes = isHash
  r.list = listOf(r)
  return r
end

local function format(r)
  local first, age, print = head(r.state, r.updated, r.fence), r.updated - r.created, r.fingerprint or ''
  if r.state == 'c' then
    return first .. struct.pack('>I4', markOf(r.token)) .. cmsgpack.pack(r.attempt, age, r.keep, r.about)
      .. packPrint(print)
  end
  return first .. table.concat({
    digits(r.attempt), digits(age), digits(r.keep), digits(r.due - r.updated),
    r.purge > 0 and digits(r.purge - r.updated) or '', r.code or '', r.settledBy or '',
    r.place and digits(r.place) or '', r.line or '', r.log or '', r.about, r.names, r.token, print,
  }, '\\31')
end

local function read(key)
  -- MGET answers nothing, and no error, for a hash.
  local packed = redis.call('MGET', key)[1]
  if packed then return parse(key, packed, false) end
  packed = redis.call('HGET', key, 'record')
  return packed and parse(key, packed, true) or nil
end

-- Where a record stands in the index; nil when it is in none.
local function placeOf(r)
  if r.state == 'c' then return r.bytes and at(${bands.kept}, r.keepBytesUntil) or nil end
  if r.state == 'd' then return at(${bands.dead}, r.purge) end
  if not r.bytes then return r.state == 'f' and at(${bands.waiting}, r.purge) or nil end
  local band = r.state == 'p' and ${bands.pending} or r.state == 'f' and ${bands.failed} or ${bands.processing}
  if not r.line then return at(band, r.due) end
  if r.place and r.place > 0 then return at(band + ${bands.linedPending}, r.due) end
  return at(band + ${bands.unplacedPending}, r.updated)
end

-- Writes the record and its places in the indexes. body, headers and result are bytes that come with this change.
local function save(r)
  local id = idOf(r.key)
  local list, place = listOf(r), placeOf(r)
  if r.list ~= list then
    if r.list then redis.call(r.list == running and 'SREM' or 'ZREM', r.list, id) end
    if r.list and r.list ~= running and not place then redis.call('ZREM', index, id) end
    if list == running then
      redis.call('SADD', running, id)
    elseif list then
      redis.call('ZADD', list, r.created, id)
    end
    r.list = list
  end
  if place then redis.call('ZADD', index, place, id) end

  local purge = r.purge
  -- A lease outlives the retention: a claim that stands is not removed.
  if r.state == 'r' and purge > 0 then purge = math.max(purge, r.due) end
  local packed, left = format(r), math.max(1, purge - now)
  if not r.bytes and not r.result then
    if purge > 0 then redis.call('SET', r.key, packed, 'PX', left) else redis.call('SET', r.key, packed) end
    r.kind = 'string'
    return
  end
  if r.kind == 'string' then redis.call('DEL', r.key) end
  if not r.bytes then redis.call('HDEL', r.key, 'body', 'headers') end
  redis.call('HSET', r.key, 'record', packed)
  if r.body then redis.call('HSET', r.key, 'body', r.body, 'headers', r.headers) end
  if r.result then redis.call('HSET', r.key, 'result', r.result) end
  if purge > 0 then redis.call('PEXPIRE', r.key, left) else redis.call('PERSIST', r.key) end
  r.kind = 'hash'
end

local function change(r, state)
  r.state, r.updated = state, now
  r.purge = r.bytes and 0 or now + r.keep
end

-- The last ten attempts that did not complete, a line of text for each.
local function note(r, ended, duration, code)
  local log = digits(r.attempt) .. ' ' .. digits(ended) .. ' ' .. duration .. ' ' .. code
  if r.log then
    log = r.log .. '\\n' .. log
    local _, breaks = string.gsub(log, '\\n', '')
    if breaks >= 10 then log = string.sub(log, string.find(log, '\\n', 1, true) + 1) end
  end
  r.log = log
end

-- Whoever comes for a claimed record whose lease has ended finds that its owner was lost.
local function noteLostOwner(r)
  if r.state == 'r' then note(r, r.due, '-', '"lease_expired"') end
end

-- It has left its line, or has to go there again: the place is kept.
local function leavePlace(r)
  if r.place and r.place > 0 then r.place = -r.place end
end

-- What has to be done about the line of a record that was changed: ' ' and the line, '@' and its place, if it has one.
local function joinOf(r)
  if not r.line or r.place and r.place > 0 then return '' end
  return ' ' .. r.line .. '@' .. digits(r.place and -r.place or 0)
end

local function bury(r, code, retention)
  change(r, 'd')
  r.code, r.purge = code, now + retention
end

local function giveBack(r)
  r.attempt, r.due, r.settledBy = r.attempt - 1, now, 'release'
  change(r, r.bytes and 'p' or 'f')
  save(r)
end

-- The bytes that came first are the ones that were acknowledged: later ones never replace them.
local function attach(r, body, headers)
  if r.bytes then return false end
  r.bytes, r.body, r.headers, r.purge = true, body, headers, 0
  return true
end

-- One for all grants of a script: it has to grow with those of one record. At least the time in microseconds, so that
-- it grows also when Redis has lost its memory. most is how many grants one record can get here: they are reserved.
local ownFence
local function nextFence(previous, most)
  if not ownFence then
    ownFence = math.max(nowUs, tonumber(redis.call('GET', fence) or '0') + 1)
    redis.call('SET', fence, digits(ownFence + most))
  end
  return math.max(ownFence, previous + 1)
end

local function grant(r, token, lease, most)
  noteLostOwner(r)
  r.token, r.fence, r.attempt, r.due, r.settledBy = token, nextFence(r.fence, most), r.attempt + 1, now + lease, false
  change(r, 'r')
end

local function held(key, token, number)
  local r = read(key)
  if not r or r.fence ~= number then return nil end
  if r.state == 'c' then return r.mark == markOf(token) and r or nil end
  return r.token == token and r or nil
end

-- A record as the operator's side and takers read it.
local function describe(r)
  return {
    r.fingerprint or '', r.state, digits(r.attempt), digits(r.fence), digits(r.created), digits(r.updated),
    digits(r.due or 0), digits(r.purge), r.bytes and '1' or '', r.code or '', r.about, r.names or '',
    isLive(r) and '1' or '', r.log or '',
  }
end
`
