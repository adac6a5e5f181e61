/** Hints of new work: in this process at once, from other processes by LISTEN and NOTIFY where the client can. */
import type { Watch } from '@webhook-inbox/core'
import { isClient, type PostgresClient, type Send } from './client.ts'
import { channelOf } from './encode.ts'
import type { Tables } from './schema.ts'

export interface Hints {
  /** Says that work was stored. Never rejects, and waits for nothing. */
  tell(): void
  watch(onWork: () => void): Promise<Watch>
  close(): Promise<void>
}

/** Hears a channel of the database until it is closed. */
interface Listener {
  close(): Promise<void>
}

// A notification that does not come by then does not come: a pooler is between.
const echoMs = 1000
const reconnectMs = 1000

/**
 * Makes the hints of one store. They are hints: what is lost is found by asking. One notification is on its way at a
 * time, after the commit and beside it: with one in each commit, commits wait for one another.
 */
export function createHints({
  pool,
  tables,
  send,
}: {
  readonly pool: PostgresClient
  readonly tables: Tables
  readonly send: Send
}): Hints {
  const channel = channelOf(tables.name)
  const watchers = new Set<() => void>()
  let telling = false
  let tellAgain = false
  let listening: Promise<Listener | undefined> | undefined
  let heard: (() => void) | undefined
  let closed = false

  function wakeAll(): void {
    heard?.()
    for (const onWork of watchers) onWork()
  }

  async function notify(): Promise<void> {
    telling = true
    do {
      tellAgain = false
      await send('SELECT pg_notify($1, $2)', [channel, '']).catch(() => {})
    } while (tellAgain && !closed)
    telling = false
  }

  /** Listens, and finds out whether what is told through the pool is heard. */
  async function listen(): Promise<Listener | undefined> {
    const listener = await openListener(pool, channel, wakeAll, relisten)
    if (listener === undefined) return undefined
    const echo = new Promise<boolean>((resolve) => {
      heard = () => resolve(true)
      setTimeout(resolve, echoMs, false)
    })
    await notify()
    const isHeard = await echo
    heard = undefined
    if (isHeard) return listener
    await listener.close()
    return undefined
  }

  // The connection is gone; polling goes on meanwhile.
  function relisten(): void {
    listening = undefined
    if (closed || watchers.size === 0) return
    const timer = setTimeout(() => {
      if (closed || watchers.size === 0) return
      listening ??= listen().catch(() => {
        relisten()
        return undefined
      })
    }, reconnectMs)
    timer.unref?.()
  }

  async function stopListening(): Promise<void> {
    const listener = await listening?.catch(() => undefined)
    listening = undefined
    await listener?.close()
  }

  return {
    tell() {
      for (const onWork of watchers) onWork()
      if (telling) tellAgain = true
      else notify()
    },

    async watch(onWork) {
      const watcher = (): void => onWork()
      watchers.add(watcher)
      listening ??= listen()
      let reach: Watch['reach'] = 'instance'
      try {
        if ((await listening) !== undefined) reach = 'all'
      } catch {
        relisten()
      }
      return {
        reach,
        async close() {
          watchers.delete(watcher)
          if (watchers.size === 0) await stopListening()
        },
      }
    },

    async close() {
      closed = true
      watchers.clear()
      await stopListening()
    },
  }
}

/** What a connection of `pg` can do beyond one query. */
interface Connection extends PostgresClient {
  connect(): Promise<unknown>
  end(): Promise<void>
  on(event: string, listener: (...values: readonly unknown[]) => void): unknown
}

/** PGlite's way. */
interface ListeningClient extends PostgresClient {
  listen(channel: string, onNotice: () => void): Promise<() => Promise<void>>
}

async function openListener(
  pool: PostgresClient,
  channel: string,
  onNotice: () => void,
  onEnd: () => void,
): Promise<Listener | undefined> {
  if (isListening(pool)) {
    const unlisten = await pool.listen(channel, onNotice)
    return { close: () => unlisten() }
  }
  const connection = connectionLike(pool)
  if (connection === undefined) return undefined
  let closing = false
  connection.on('error', () => {})
  connection.on('notification', onNotice)
  connection.on('end', () => {
    if (!closing) onEnd()
  })
  const close = async (): Promise<void> => {
    closing = true
    await connection.end().catch(() => {})
  }
  try {
    await connection.connect()
    await connection.query(`LISTEN "${channel}"`)
  } catch (error) {
    await close()
    throw error
  }
  return { close }
}

function isListening(pool: PostgresClient): pool is ListeningClient {
  return 'listen' in pool && typeof pool.listen === 'function'
}

/** A connection of its own, as the pool would make one: one of the pool's would be lost to it. */
function connectionLike(pool: PostgresClient): Connection | undefined {
  if (!('Client' in pool) || !('options' in pool) || !isConstructor(pool.Client)) return undefined
  const connection: unknown = new pool.Client(pool.options)
  return isConnection(connection) ? connection : undefined
}

function isConstructor(value: unknown): value is new (options: unknown) => unknown {
  return typeof value === 'function'
}

function isConnection(value: unknown): value is Connection {
  return (
    isClient(value) &&
    ['connect', 'end', 'on'].every((name) => typeof Reflect.get(value, name) === 'function')
  )
}
