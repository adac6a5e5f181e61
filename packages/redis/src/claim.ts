import {
  type ClaimEntry,
  type ClaimResult,
  type StoredPayload,
  storeUnavailable,
} from '@webhook-inbox/core'
import type { Connection } from './connection.ts'
import { copyBytes, packHeaders } from './encoding.ts'
import { placeOf, shardKeys } from './key.ts'
import { type Lines, lineOf } from './lines.ts'
import { packNew } from './new-record.ts'
import { recordLua } from './record-lua.ts'
import { defineScript, textOf } from './script.ts'
import { createShardBatch, type PlacedCall } from './shard-batch.ts'

// ARGV[1] tells how long the records of new claims are kept if that is the same for all and they have no bytes, and else
// nothing. ARGV[2] is a list of the terms of each claim, or 0 for those of the one before it. Then comes for each the
// record that it makes if it is new (packNew). The bytes of an entry that brings some are in ARGV[bytes], its headers in
// the one after.
// Answers a text with a line for each entry, then the results of completed ones.
const claimScript = defineScript(
  'claim',
  `${recordLua}
local count, keepNew, terms = #KEYS - ${shardKeys.length}, ARGV[1], nil
local lines, reply = {}, { '' }
-- The entry in hand.
local token, print, about, names, lease, keep, bytes, most, queued, backoff, redeliver, keepDead, line

local function granted(r)
  grant(r, token, lease, count)
  save(r)
  return 'claimed ' .. digits(r.fence) .. ' ' .. digits(r.attempt)
end

local function bring(r)
  if bytes == 0 or not attach(r, ARGV[bytes], ARGV[bytes + 1]) then return false end
  if queued then r.line = line end
  return true
end

-- What is known of the records before anything is changed: asking for all at once is cheaper. MGET passes over hashes.
local found, touched, isFree = {}, {}, true
local existing = redis.call('EXISTS', unpack(KEYS, ${shardKeys.length + 1}))
if existing > 0 then
  found = redis.call('MGET', unpack(KEYS, ${shardKeys.length + 1}))
  for i = 1, count do
    if found[i] then existing = existing - 1 end
  end
  isFree = existing == 0
end

-- Claims that begin to run without bytes are added to their set together.
local started = {}
local function addStarted()
  if #started > 0 then redis.call('SADD', running, unpack(started)) end
  started = {}
end

-- What save() would write for the usual case, a new inline claim, by a shorter way.
local first, answer
local function start(key, record)
  if not first then
    local number = nextFence(0, count)
    first, answer = head('r', now, number), '1 claimed ' .. digits(number) .. ' 1'
  end
  redis.call('SET', key, first .. record, 'PX', keepNew)
  started[#started + 1] = idOf(key)
  return answer
end

local function create(key)
  local r = {
    key = key, kind = 'none', state = 'p', token = '', fence = 0, attempt = 0, created = now, updated = now, due = now,
    keep = keep, purge = 0, fingerprint = print, about = about, code = false, names = names, settledBy = false,
  }
  bring(r)
  if not queued then return granted(r) end
  change(r, 'p')
  save(r)
  return 'pending 1' .. joinOf(r)
end

local function claim(r)
  if r.state == 'c' then
    local result = r.kind == 'hash' and redis.call('HGET', r.key, 'result')
    if result then reply[#reply + 1] = result end
    return 'completed ' .. digits(r.updated) .. ' ' .. (result and digits(#reply - 1) or '0')
  end
  local changed = not r.fingerprint and print and true
  r.fingerprint = r.fingerprint or print
  if r.state == 'r' and r.token == token then
    r.due = now + lease
    save(r)
    return 'claimed ' .. digits(r.fence) .. ' ' .. digits(r.attempt)
  end
  if r.state == 'd' then
    if not redeliver then
      if changed then save(r) end
      return 'dead'
    end
    r.attempt, r.due = 0, now
    change(r, 'f')
    leavePlace(r)
    changed = true
  end
  if queued then changed = bring(r) or changed end
  -- An inline claim of what waits in a line would overtake the others.
  if (queued or r.line) and not isLive(r) then
    if changed then save(r) end
    return 'pending 0' .. joinOf(r)
  end
  if isLive(r) then
    if changed then save(r) end
    return 'processing ' .. digits(r.due - now) .. joinOf(r)
  end
  if most > 0 and r.attempt >= most and r.state ~= 'p' then
    noteLostOwner(r)
    bury(r, '"attempts_exhausted"', keepDead)
    save(r)
    return 'dead'
  end
  if r.state == 'f' and backoff and r.due > now then
    if changed then save(r) end
    return 'waiting ' .. digits(r.due - now)
  end
  return granted(r)
end

local function examine(i, key, packed)
  local attempt, age, purge, code, settledBy, place, log
  attempt, age, keep, lease, purge, code, settledBy, place, line, log, about, names, token, print = cut(packed, 1)
  keep, lease, print = tonumber(keep), tonumber(lease), there(print)
  terms = terms or cjson.decode(ARGV[2])
  local j = i
  while terms[j] == 0 do j = j - 1 end
  queued, most, backoff, redeliver, keepDead, bytes, line = unpack(terms[j])
  local r
  if found[i] and not touched[key] then r = parse(key, found[i], false) else r = read(key) end
  touched[key] = true
  if not r then return '1 ' .. create(key) end
  local matches = not r.fingerprint or not print or r.fingerprint == print
  return (matches and '1 ' or '0 ') .. claim(r)
end

for i = 1, count do
  local key, packed = KEYS[${shardKeys.length} + i], ARGV[2 + i]
  if isFree and not found[i] and not touched[key] and keepNew ~= '' then
    touched[key], lines[i] = true, start(key, packed)
  else
    -- The record may be one of them; and whatever trips over it has to leave them in order.
    addStarted()
    lines[i] = examine(i, key, packed)
  end
end
addStarted()
reply[1] = table.concat(lines, '\\n')
return reply
`,
)

interface Claim extends PlacedCall {
  readonly entry: ClaimEntry
  readonly body?: Buffer
  readonly headers?: string
}

/** Claims one entry; entries that come together travel together. */
export type ClaimOne = (entry: ClaimEntry) => Promise<ClaimResult>

/** What a claim was answered, and the line that the record has to be put into before that is told. */
interface Answer {
  readonly result: ClaimResult
  readonly join: string | undefined
}

export function createClaim(connection: Connection, lines: Lines): ClaimOne {
  const claim = createShardBatch<Claim, Answer>({
    connection,
    script: claimScript,
    replicate: true,
    sizeOf: ({ body, headers }) => (body?.length ?? 0) + (headers?.length ?? 0),
    argsOf,
    resultsOf,
  })
  return async (entry) => {
    const place = placeOf(entry.key, connection.shards.length)
    const asked = claim({ entry, token: entry.token, place, ...copyOf(entry.payload) })
    const join = async ({ result, join }: Answer): Promise<ClaimResult> => {
      if (join !== undefined) await lines.join(place, join)
      return result
    }
    if (entry.mode === 'inline' || entry.order === undefined) {
      const answer = await asked
      return answer.join === undefined ? answer.result : join(answer)
    }
    // In the order in which they came, whatever their records took.
    return lines.inTurn(lineOf(entry.order), asked, join)
  }
}

function copyOf(payload: StoredPayload | undefined): Pick<Claim, 'body' | 'headers'> {
  if (payload === undefined) return {}
  return { body: copyBytes(payload.body), headers: packHeaders(payload.headers) }
}

function argsOf(claims: readonly Claim[]): readonly (Buffer | string)[] {
  const bytes: (Buffer | string)[] = []
  const terms = claims.map(({ entry, body, headers }, index) => {
    if (body !== undefined && headers !== undefined) {
      bytes.push(body, headers)
      return termsOf(entry, claims.length + bytes.length + 1)
    }
    const before = claims[index - 1]
    return before !== undefined && before.body === undefined && haveSameTerms(before.entry, entry)
      ? 0
      : termsOf(entry, 0)
  })
  const [usual] = claims
  const isUsual =
    usual !== undefined &&
    usual.entry.mode === 'inline' &&
    bytes.length === 0 &&
    claims.every(({ entry }) => entry.mode === 'inline' && keptMs(entry) === keptMs(usual.entry))
  return [
    isUsual ? String(keptMs(usual.entry)) : '',
    JSON.stringify(terms),
    ...claims.map(({ entry, place }) => packNew(entry, place.names)),
    ...bytes,
  ]
}

/** How long Redis keeps the record of a new inline claim. */
function keptMs({ leaseMs, unfinishedRetentionMs }: ClaimEntry): number {
  return Math.max(leaseMs, unfinishedRetentionMs)
}

function termsOf(entry: ClaimEntry, bytes: number) {
  return [
    entry.mode === 'queued',
    entry.maxAttempts ?? 0,
    entry.respectBackoff === true,
    entry.redeliverDead === true,
    entry.deadRetentionMs ?? entry.unfinishedRetentionMs,
    bytes,
    entry.mode === 'queued' && entry.order !== undefined && lineOf(entry.order),
  ]
}

function haveSameTerms(a: ClaimEntry, b: ClaimEntry): boolean {
  return (
    a.mode === b.mode &&
    a.maxAttempts === b.maxAttempts &&
    a.respectBackoff === b.respectBackoff &&
    a.redeliverDead === b.redeliverDead &&
    a.deadRetentionMs === b.deadRetentionMs &&
    a.unfinishedRetentionMs === b.unfinishedRetentionMs
  )
}

function resultsOf(reply: unknown, claims: readonly Claim[]): readonly Answer[] {
  if (!Array.isArray(reply)) throw noClaimAnswer()
  const [text, ...results]: readonly unknown[] = reply
  const lines = textOf(text).split('\n')
  let line: string | undefined
  let words: readonly string[] = []
  return claims.map(({ entry }, index) => {
    // New claims are all answered the same.
    if (lines[index] !== line) {
      line = lines[index] ?? ''
      words = line.split(' ')
    }
    const [matches, status, first, second] = words
    const joins = (status === 'pending' || status === 'processing') && second !== undefined
    return {
      result: {
        ...readResult(status, Number(first), Number(second), entry, results),
        fingerprintMatches: matches === '1',
      },
      join: joins ? second : undefined,
    }
  })
}

type Found = ClaimResult extends infer Result
  ? Result extends unknown
    ? Omit<Result, 'fingerprintMatches'>
    : never
  : never

function readResult(
  status: string | undefined,
  first: number,
  second: number,
  entry: ClaimEntry,
  results: readonly unknown[],
): Found {
  switch (status) {
    case 'claimed':
      return { status, fence: first, attempt: second, leaseMs: entry.leaseMs }
    case 'pending':
      return { status, fresh: first === 1 }
    case 'processing':
      return { status, leaseMs: first }
    case 'waiting':
      return { status, retryInMs: first }
    case 'dead':
      return { status }
    case 'completed': {
      const at = new Date(first)
      const result = second === 0 ? undefined : results[second - 1]
      return Buffer.isBuffer(result)
        ? { status, at, result: new Uint8Array(result) }
        : { status, at }
    }
    default:
      throw noClaimAnswer()
  }
}

function noClaimAnswer(): Error {
  return storeUnavailable('Redis answered a claim with something else than its result.')
}
