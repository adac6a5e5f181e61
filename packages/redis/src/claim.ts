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

// ARGV[1] lists the entries; the bytes of entry i, when it brings some, are ARGV[n] and its headers ARGV[n + 1].
// Answers a text with a line for each entry, then the results of completed ones.
const claimScript = defineScript(
  'claim',
  `${recordLua}
local entries, lines, reply = cjson.decode(ARGV[1]), {}, { '' }

local function granted(r, e)
  grant(r, e.token, e.lease, #entries)
  save(r)
  return 'claimed ' .. digits(r.fence) .. ' ' .. digits(r.attempt)
end

local function bring(r, e)
  return e.bytes > 0 and attach(r, ARGV[e.bytes], ARGV[e.bytes + 1])
end

local function create(key, e)
  local r = {
    key = key, kind = 'none', state = 'p', token = '', fence = 0, attempt = 0, created = now, updated = now, due = now,
    keep = e.keep, purge = 0, fingerprint = e.fingerprint, about = e.about, code = false, names = e.names,
    settledBy = false,
  }
  bring(r, e)
  if not e.queued then return granted(r, e) end
  change(r, 'p')
  save(r)
  return 'pending 1'
end

local function claim(r, e)
  if r.state == 'c' then
    local result = r.kind == 'hash' and redis.call('HGET', r.key, 'result')
    if result then reply[#reply + 1] = result end
    return 'completed ' .. digits(r.updated) .. ' ' .. (result and digits(#reply - 1) or '0')
  end
  local changed = not r.fingerprint and e.fingerprint and true
  r.fingerprint = r.fingerprint or e.fingerprint
  if r.state == 'r' and r.token == e.token then
    r.due = now + e.lease
    save(r)
    return 'claimed ' .. digits(r.fence) .. ' ' .. digits(r.attempt)
  end
  if r.state == 'd' then
    if not e.redeliver then
      if changed then save(r) end
      return 'dead'
    end
    r.attempt, r.due = 0, now
    change(r, 'f')
    changed = true
  end
  if e.queued then
    changed = bring(r, e) or changed
    if not isLive(r) then
      if changed then save(r) end
      return 'pending 0'
    end
  end
  if isLive(r) then
    if changed then save(r) end
    return 'processing ' .. digits(r.due - now)
  end
  if e.most > 0 and r.attempt >= e.most and r.state ~= 'p' then
    bury(r, '"attempts_exhausted"', e.keep)
    save(r)
    return 'dead'
  end
  if r.state == 'f' and e.backoff and r.due > now then
    if changed then save(r) end
    return 'waiting ' .. digits(r.due - now)
  end
  return granted(r, e)
end

for i, v in ipairs(entries) do
  local e = {
    token = v[1], lease = v[2], queued = v[3], fingerprint = v[4], about = v[5], most = v[6], backoff = v[7],
    redeliver = v[8], keep = v[9], names = v[10], bytes = v[11],
  }
  local r = read(record(i))
  if not r then
    lines[i] = '1 ' .. create(record(i), e)
  else
    local matches = not r.fingerprint or not e.fingerprint or r.fingerprint == e.fingerprint
    lines[i] = (matches and '1 ' or '0 ') .. claim(r, e)
  end
end
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
  const bytes: (Buffer | string)[] = []
  const list = claims.map(({ entry, body, headers }) => {
    const brings = body !== undefined && headers !== undefined
    if (brings) bytes.push(body, headers)
    return [
      packText(entry.token),
      entry.leaseMs,
      entry.mode === 'queued',
      entry.fingerprint === undefined ? false : packText(entry.fingerprint),
      packAbout(entry),
      entry.maxAttempts ?? 0,
      entry.respectBackoff === true,
      entry.redeliverDead === true,
      entry.unfinishedRetentionMs,
      packKey(entry.key),
      brings ? bytes.length : 0,
    ]
  })
  return {
    keys: claims.map(({ place }) => `${base}${place.id}`),
    args: [JSON.stringify(list), ...bytes],
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
