import {
  type CompleteOptions,
  type DeliveryKey,
  type FailOptions,
  type Hold,
  type RenewResult,
  type SettleResult,
  storeUnavailable,
} from '@webhook-inbox/core'
import type { Connection } from './connection.ts'
import { copyBytes, packHeaders } from './encoding.ts'
import { placeOf } from './key.ts'
import type { Lines } from './lines.ts'
import { recordLua } from './record-lua.ts'
import { defineScript, type Script, textOf } from './script.ts'
import { createShardBatch, type PlacedCall } from './shard-batch.ts'

/** What the holder of a claim can do. Calls of one kind and shard that come together travel together. */
export interface Settling {
  renew(hold: Hold, leaseMs: number): Promise<RenewResult>
  complete(hold: Hold, options: CompleteOptions): Promise<SettleResult>
  fail(hold: Hold, options: FailOptions): Promise<SettleResult>
  release(hold: Hold): Promise<SettleResult>
  abandon(key: DeliveryKey, token: string): Promise<void>
}

// Each script gets a list of holds in ARGV[1], the record of each after the keys of the shard, and answers a word for each.
// State, token and fence guard every one of them, never the lease time. Behind an "ok" stands the line that has to be looked at.
function settleScript(name: string, settleOne: string): Script {
  return defineScript(
    name,
    `${recordLua}
local function done(r) return r.line and 'ok:' .. r.line or 'ok' end
${settleOne}
local answers = {}
for i, v in ipairs(cjson.decode(ARGV[1])) do answers[i] = settle(record(i), v[1], v[2], v) end
return table.concat(answers, ' ')
`,
  )
}

const renewScript = settleScript(
  'renew',
  `
local function settle(key, token, number, v)
  local r = held(key, token, number)
  if not r or r.state ~= 'r' then return 'lost' end
  r.due = now + v[3]
  if not r.bytes then r.purge = now + r.keep end
  save(r)
  return 'ok'
end`,
)

const completeScript = settleScript(
  'complete',
  `
local function settle(key, token, number, v)
  local r = held(key, token, number)
  if r and r.settledBy == 'complete' then return 'already' end
  if not r or r.state ~= 'r' then return 'lost' end
  local retention, keepBytes, result = v[3], v[4], v[5]
  r.state, r.updated, r.keep, r.purge = 'c', now, retention, now + retention
  r.bytes = r.bytes and keepBytes > 0
  r.keepBytesUntil = now + keepBytes
  if result > 0 then r.result = ARGV[result] end
  save(r)
  return done(r)
end`,
)

const failScript = settleScript(
  'fail',
  `
local function settle(key, token, number, v)
  local r = held(key, token, number)
  if r and r.settledBy == 'fail' then return 'already' end
  if not r or r.state ~= 'r' then return 'lost' end
  local code, retention, retryIn, bytes, duration = v[3], v[4], v[5], v[6], v[7]
  note(r, now, duration < 0 and '-' or digits(duration), code)
  r.settledBy = 'fail'
  if bytes > 0 then attach(r, ARGV[bytes], ARGV[bytes + 1]) end
  if retryIn < 0 then
    bury(r, code, retention)
  else
    change(r, 'f')
    r.code, r.due = code, now + retryIn
    if not r.bytes then r.purge = now + retention end
  end
  save(r)
  return done(r)
end`,
)

const releaseScript = settleScript(
  'release',
  `
local function settle(key, token, number)
  local r = held(key, token, number)
  if r and r.settledBy == 'release' then return 'already' end
  if not r or r.state ~= 'r' then return 'lost' end
  giveBack(r)
  return done(r)
end`,
)

const abandonScript = settleScript(
  'abandon',
  `
local function settle(key, token)
  local r = read(key)
  if not r or r.state ~= 'r' or r.token ~= token then return 'lost' end
  giveBack(r)
  return done(r)
end`,
)

interface Call {
  readonly key: DeliveryKey
  readonly token: string
  readonly fence: number
  /** What follows token and fence; a function gets the number of the argument that holds the call's bytes. */
  readonly rest: (firstByte: number) => readonly (string | number)[]
  readonly bytes: readonly (Buffer | string)[]
}

export function createSettling(connection: Connection, lines: Lines): Settling {
  const renew = settler(connection, lines, renewScript)
  const complete = settler(connection, lines, completeScript)
  const fail = settler(connection, lines, failScript)
  const release = settler(connection, lines, releaseScript)
  const abandon = settler(connection, lines, abandonScript)

  return {
    async renew(hold, leaseMs) {
      const word = await renew({ ...hold, rest: () => [leaseMs], bytes: [] })
      return word === 'ok' ? 'ok' : 'lost'
    },

    async complete(hold, { retentionMs, result, payloadRetentionMs = 0 }) {
      const bytes = result === undefined ? [] : [copyBytes(result)]
      return complete({
        ...hold,
        rest: (first) => [retentionMs, payloadRetentionMs, bytes.length === 0 ? 0 : first],
        bytes,
      })
    },

    async fail(hold, options) {
      const { code, retentionMs, payload } = options
      const retryInMs = options.dead === true ? -1 : options.retryInMs
      const bytes =
        payload === undefined ? [] : [copyBytes(payload.body), packHeaders(payload.headers)]
      return fail({
        ...hold,
        rest: (first) => [
          JSON.stringify(code),
          retentionMs,
          retryInMs,
          bytes.length === 0 ? 0 : first,
          options.durationMs ?? -1,
        ],
        bytes,
      })
    },

    release: (hold) => release({ ...hold, rest: () => [], bytes: [] }),

    async abandon(key, token) {
      await abandon({ key, token, fence: 0, rest: () => [], bytes: [] })
    },
  }
}

function settler(
  connection: Connection,
  lines: Lines,
  script: Script,
): (call: Call) => Promise<SettleResult> {
  // A resent call does not go with the first, and is then told "already".
  const settle = createShardBatch<Call & PlacedCall, string>({
    connection,
    script,
    sizeOf: ({ bytes }) => bytes.reduce((sum, part) => sum + part.length, 0),
    argsOf(calls) {
      const args: (Buffer | string)[] = []
      const list = calls.map(({ token, fence, rest, bytes }) => {
        const own = [token, fence, ...rest(args.length + 2)]
        args.push(...bytes)
        return own
      })
      return [JSON.stringify(list), ...args]
    },
    resultsOf: (reply) => textOf(reply).split(' '),
  })
  return async (call) => {
    const answer = await settle({ ...call, place: placeOf(call.key, connection.shards.length) })
    const cut = answer.indexOf(':')
    if (cut === -1) return readWord(answer)
    await lines.wake(answer.slice(cut + 1))
    return readWord(answer.slice(0, cut))
  }
}

function readWord(word: string): SettleResult {
  if (word === 'ok' || word === 'already' || word === 'lost') return word
  throw storeUnavailable('Redis answered a settlement with something else than its result.')
}
