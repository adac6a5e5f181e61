import {
  type ClaimEntry,
  type ClaimResult,
  createBatch,
  type StoredPayload,
  storeUnavailable,
} from '@webhook-inbox/core'
import type { Connection } from './connection.ts'
import { copyBytes, packAbout, packHeaders, packKey, packText } from './encoding.ts'
import { type Place, placeOf } from './key.ts'
import { recordLua } from './record-lua.ts'
import { defineScript, textOf } from './script.ts'

// Bytes of a packed token of 32 hex digits, and of a fingerprint of 64.
const usualToken = 17
const usualPrint = 33

// ARGV[1] lists the entries, those of fresh inline claims in four fields; ARGV[2] holds their tokens and fingerprints,
// one after the other. The bytes of an entry that brings some are in ARGV[bytes], its headers in the one after.
// Answers a text with a line for each entry, then the results of completed ones.
const claimScript = defineScript(
  'claim',
  `${recordLua}
local entries, lines, reply, taken = cjson.decode(ARGV[1]), {}, { '' }, 0
-- The entry in hand.
local token, print, about, names, lease, keep, bytes, most, queued, backoff, redeliver

local function cut(length)
  local first = taken + 1
  taken = taken + length
  return length > 0 and string.sub(ARGV[2], first, taken)
end

local function granted(r)
  grant(r, token, lease, #entries)
  save(r)
  return 'claimed ' .. digits(r.fence) .. ' ' .. digits(r.attempt)
end

local function bring(r)
  return bytes > 0 and attach(r, ARGV[bytes], ARGV[bytes + 1])
end

-- Claims that begin to run without bytes are added to their set together.
local started = {}
local function addStarted()
  if #started > 0 then redis.call('SADD', running, unpack(started)) end
  started = {}
end

-- What save() would write for the usual case, a new inline claim, by a shorter way.
local function start(key)
  local number = nextFence(0, #entries)
  local packed = cmsgpack.pack({
    'r', token, number, 1, now, 0, keep, print, about, now + lease, now + keep, false, names, false,
  })
  redis.call('SET', key, packed, 'PX', math.max(keep, lease))
  started[#started + 1] = idOf(key)
  return 'claimed ' .. digits(number) .. ' 1'
end

local function create(key)
  if not queued and bytes == 0 then return start(key) end
  local r = {
    key = key, kind = 'none', state = 'p', token = '', fence = 0, attempt = 0, created = now, updated = now, due = now,
    keep = keep, purge = 0, fingerprint = print, about = about, code = false, names = names, settledBy = false,
  }
  bring(r)
  if not queued then return granted(r) end
  change(r, 'p')
  save(r)
  return 'pending 1'
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
    changed = true
  end
  if queued then
    changed = bring(r) or changed
    if not isLive(r) then
      if changed then save(r) end
      return 'pending 0'
    end
  end
  if isLive(r) then
    if changed then save(r) end
    return 'processing ' .. digits(r.due - now)
  end
  if most > 0 and r.attempt >= most and r.state ~= 'p' then
    bury(r, '"attempts_exhausted"', keep)
    save(r)
    return 'dead'
  end
  if r.state == 'f' and backoff and r.due > now then
    if changed then save(r) end
    return 'waiting ' .. digits(r.due - now)
  end
  return granted(r)
end

for i, e in ipairs(entries) do
  lease, keep, about, names, bytes, most = e[1], e[2], e[3], e[4], e[7] or 0, e[8] or 0
  queued, backoff, redeliver = e[9], e[10], e[11]
  token, print = cut(e[5] or ${usualToken}), cut(e[6] or ${usualPrint})
  local r = read(record(i))
  if not r then
    lines[i] = '1 ' .. create(record(i))
  else
    addStarted()
    local matches = not r.fingerprint or not print or r.fingerprint == print
    lines[i] = (matches and '1 ' or '0 ') .. claim(r)
  end
end
addStarted()
reply[1] = table.concat(lines, '\\n')
return reply
`,
)

interface Claim {
  readonly entry: ClaimEntry
  readonly place: Place
  readonly body?: Buffer
  readonly headers?: string
}

/** Claims one entry; entries of one shard that come together travel together. */
export type ClaimOne = (entry: ClaimEntry) => Promise<ClaimResult>

export function createClaim(connection: Connection): ClaimOne {
  const { shards, timeoutMs } = connection
  const batches = shards.map((shard) =>
    createBatch<Claim, ClaimResult>({
      // No two claims of one token in a batch; those of other tokens are told apart by the script.
      keyOf: ({ entry, place }) => `${place.id} ${entry.token}`,
      sizeOf: ({ body, headers }) => (body?.length ?? 0) + (headers?.length ?? 0),
      // Redis works through one after the other anyway: what arrives meanwhile goes together.
      maxInFlight: 1,
      timeoutMs,
      async send(claims) {
        const { keys, args } = argumentsOf(claims, shard.base)
        const reply = await connection.run(claimScript, shard, keys, args, { replicate: true })
        return readResults(reply, claims)
      },
    }),
  )
  return async (entry) => {
    const place = placeOf(entry.key, shards.length)
    const batch = batches[place.shard]
    if (batch === undefined) throw new RangeError('There is no such shard.')
    return batch({ entry, place, ...copyOf(entry.payload) })
  }
}

function copyOf(payload: StoredPayload | undefined): Pick<Claim, 'body' | 'headers'> {
  if (payload === undefined) return {}
  return { body: copyBytes(payload.body), headers: packHeaders(payload.headers) }
}

function argumentsOf(claims: readonly Claim[], base: string) {
  let texts = ''
  const bytes: (Buffer | string)[] = []
  const list = claims.map(({ entry, body, headers }) => {
    const brings = body !== undefined && headers !== undefined
    if (brings) bytes.push(body, headers)
    const token = packText(entry.token)
    const fingerprint = entry.fingerprint === undefined ? '' : packText(entry.fingerprint)
    texts += token + fingerprint
    const { leaseMs, unfinishedRetentionMs } = entry
    const common = [leaseMs, unfinishedRetentionMs, packAbout(entry), packKey(entry.key)]
    const isUsual =
      token.length === 2 * usualToken &&
      fingerprint.length === 2 * usualPrint &&
      entry.mode === 'inline' &&
      entry.maxAttempts === undefined &&
      entry.respectBackoff !== true &&
      entry.redeliverDead !== true
    if (isUsual) return common
    return [
      ...common,
      token.length / 2,
      fingerprint.length / 2,
      brings ? bytes.length + 1 : 0,
      entry.maxAttempts ?? 0,
      entry.mode === 'queued',
      entry.respectBackoff === true,
      entry.redeliverDead === true,
    ]
  })
  return {
    keys: claims.map(({ place }) => `${base}${place.id}`),
    args: [JSON.stringify(list), Buffer.from(texts, 'hex'), ...bytes],
  }
}

function readResults(reply: unknown, claims: readonly Claim[]): readonly ClaimResult[] {
  if (!Array.isArray(reply)) throw noClaimAnswer()
  const [text, ...results]: readonly unknown[] = reply
  const lines = textOf(text).split('\n')
  return claims.map(({ entry }, index) => {
    const [matches, status, first, second] = (lines[index] ?? '').split(' ')
    return {
      ...readResult(status, Number(first), Number(second), entry, results),
      fingerprintMatches: matches === '1',
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
