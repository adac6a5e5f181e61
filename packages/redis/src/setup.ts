import {
  type ClaimEntry,
  type DeliveryKey,
  type Store,
  WebhookInboxError,
} from '@webhook-inbox/core'
import type { RedisClient } from './client.ts'
import type { Connection } from './connection.ts'
import { placeOf } from './key.ts'
import { textOf } from './script.ts'

/** What may lose records, in plain words. */
export interface RedisWarning {
  /**
   * - `eviction`: Redis may remove records to make room
   * - `persistence`: a restart loses all records, or the last ones
   * - `unchecked`: it does not say how it is set up
   */
  readonly code: 'eviction' | 'persistence' | 'unchecked'
  readonly message: string
}

/** Hands a warning to Node's own: it is printed once, and heard by `process.on('warning')`. */
export function warnProcess({ code, message }: RedisWarning): void {
  process.emitWarning(message, {
    type: 'WebhookInboxWarning',
    code: `WEBHOOK_INBOX_REDIS_${code.toUpperCase()}`,
  })
}

const meaningOfLoss =
  'A lost record of a completed delivery means that a late copy runs again; a lost queued delivery is never run at all, although its sender was told 2xx.'

/** Looks whether this Redis can hold the records, and proves it with throw-away ones. */
export function createSetup(options: {
  readonly connection: Connection
  readonly store: Store
  readonly prefix: string
  readonly onWarning: (warning: RedisWarning) => void
}): () => Promise<void> {
  const { connection, store, prefix, onWarning } = options
  const warned = new Set<string>()
  let isProven = false

  function warn(warning: RedisWarning): void {
    if (warned.has(warning.message)) return
    warned.add(warning.message)
    onWarning(warning)
  }

  return async () => {
    if (isProven) return
    for (const node of await nodesOf(connection)) await checkNode(connection, node, warn)
    await checkShards(connection, prefix)
    await Promise.all(connection.shards.map((shard) => proveShard(connection, store, shard.number)))
    isProven = true
  }
}

async function nodesOf(connection: Connection): Promise<readonly RedisClient[]> {
  const { client } = connection
  if (client.nodes === undefined) return [client]
  // A cluster client knows its nodes when it has connected.
  await connection.command('ping', [])
  return client.nodes('master')
}

async function checkNode(
  connection: Connection,
  node: RedisClient,
  warn: (warning: RedisWarning) => void,
): Promise<void> {
  const info = await infoOf(connection, node)
  if (info === undefined) {
    warn({
      code: 'unchecked',
      message: `Redis does not let this user run INFO, so it could not be checked whether it keeps its data. It should: "maxmemory-policy noeviction" and "appendonly yes". ${meaningOfLoss}`,
    })
    return
  }
  checkVersion(info)
  if (info.role === 'slave') {
    throw setupError(
      'the client is connected to a read-only replica. Connect it to the primary; with Sentinel: new Redis({ sentinels: […], name: … }).',
    )
  }
  const policy = info.maxmemory_policy ?? ''
  if (info.maxmemory !== '0' && /^(allkeys|volatile)-/.test(policy)) {
    const which = policy.startsWith('allkeys') ? 'any record' : 'records of settled deliveries'
    warn({
      code: 'eviction',
      message: `Redis may remove ${which} when its memory is full ("maxmemory-policy" is "${policy}"). Set it to "noeviction", or use another Redis than the one of your cache. ${meaningOfLoss}`,
    })
  }
  if (info.aof_enabled === '1') return
  const saves = await setting(connection, node, 'save')
  warn({
    code: 'persistence',
    message: `${persistenceOf(saves)} Set "appendonly yes" to lose at most the last second. ${meaningOfLoss}`,
  })
}

function persistenceOf(saves: string | undefined): string {
  if (saves === undefined)
    return 'Redis keeps no log of its changes ("appendonly" is "no"), and it could not be checked whether it saves snapshots: a crash loses what came after the last one.'
  return saves === ''
    ? 'Redis keeps everything in memory only ("appendonly" is "no", "save" is empty): a restart loses all records.'
    : `Redis saves snapshots only ("appendonly" is "no", "save" is "${saves}"): a crash loses what came after the last one.`
}

type Info = Readonly<Record<string, string | undefined>>

async function infoOf(connection: Connection, node: RedisClient): Promise<Info | undefined> {
  try {
    const text = textOf(await connection.command('info', [], node))
    return Object.fromEntries(
      text.split(/\r?\n/).flatMap((line) => {
        const colon = line.indexOf(':')
        return colon === -1 ? [] : [[line.slice(0, colon), line.slice(colon + 1)]]
      }),
    )
  } catch (error) {
    if (isRefusal(error)) return undefined
    throw error
  }
}

async function setting(
  connection: Connection,
  node: RedisClient,
  name: string,
): Promise<string | undefined> {
  try {
    const answer = await connection.command('config', ['get', name], node)
    return Array.isArray(answer) && answer.length === 2 ? textOf(answer[1]) : undefined
  } catch (error) {
    if (isRefusal(error)) return undefined
    throw error
  }
}

/** Managed servers forbid commands: that is an answer, an unreachable server is not. */
function isRefusal(error: unknown): boolean {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  return cause instanceof Error && /^(NOPERM|ERR) /.test(cause.message)
}

function checkVersion(info: Info): void {
  // Valkey and others say which Redis they are like.
  const version = info.redis_version
  const [major = 0, minor = 0] = (version ?? '').split('.').map(Number)
  if (version === undefined || major > 6 || (major === 6 && minor >= 2)) return
  throw setupError(`this is Redis ${version}; the store needs 6.2 or newer, or Valkey.`)
}

/** With another number of shards every delivery would be looked for in another place. */
async function checkShards(connection: Connection, prefix: string): Promise<void> {
  const name = `${prefix}:shards`
  const wanted = String(connection.shards.length)
  await connection.command('set', [name, wanted, 'NX'])
  const found = textOf(await connection.command('get', [name]))
  if (found === wanted) return
  throw setupError(
    `the deliveries under the prefix "${prefix}" were stored with "shards": ${found}, and this store has ${wanted}. Write shards: ${found}, or another prefix for a store that begins empty.`,
  )
}

/** One claim has to win, its copy to lose, its completion to last as long as it should, and the scripts to be known. */
async function proveShard(connection: Connection, store: Store, number: number): Promise<void> {
  const key = keyIn(number, connection.shards.length)
  const entry = (): ClaimEntry => ({
    key,
    token: crypto.randomUUID(),
    leaseMs: 30_000,
    mode: 'inline',
    unfinishedRetentionMs: 60_000,
  })
  const entries = [entry(), entry()]
  const results = await Promise.all(entries.map((one) => store.claim([one])))
  const won = results.findIndex(([result]) => result?.status === 'claimed')
  const [claimed] = results[won] ?? []
  const [copy] = results[1 - won] ?? []
  const { token } = entries[won] ?? entry()
  if (claimed?.status !== 'claimed' || copy?.status !== 'processing')
    throw failedProof(
      `of two claims one has to win and one to lose, and they were "${results.map(([result]) => result?.status).join('" and "')}"`,
    )
  const { fence } = claimed
  const retentionMs = 60_000
  if ((await store.complete({ key, token, fence }, { retentionMs })) !== 'ok')
    throw failedProof('the winner of a claim could not complete it')
  const [late] = await store.claim([entry()])
  if (late?.status !== 'completed') throw failedProof(`a copy was told "${late?.status}"`)
  const { base } = connection.shards[number] ?? { base: '' }
  const name = `${base}${placeOf(key, connection.shards.length).id}`
  const leftMs = Number(await connection.command('pttl', [name]))
  if (!(leftMs > 0 && leftMs <= retentionMs))
    throw failedProof(`a record to be kept for ${retentionMs} ms has ${leftMs} ms left`)
  await connection.command('del', [name])
}

function keyIn(shard: number, shards: number): DeliveryKey {
  for (;;) {
    const key = { provider: 'self-check', endpoint: '', deliveryId: crypto.randomUUID() }
    if (placeOf(key, shards).shard === shard) return key
  }
}

function failedProof(what: string): WebhookInboxError {
  return setupError(
    `the self-check failed: ${what}. Something between this client and Redis changes what is written or read.`,
  )
}

function setupError(message: string): WebhookInboxError {
  return new WebhookInboxError('ERR_STORE_SETUP', `redisStore: ${message}`)
}
