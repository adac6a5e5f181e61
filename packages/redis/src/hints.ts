/** Hints of new work: in this process at once, from other processes by a channel of Redis. */
import type { Watch } from '@webhook-inbox/core'
import type { RedisClient, Subscriber } from './client.ts'
import type { Connection } from './connection.ts'

export interface Hints {
  /** Says that work was stored. Never rejects, and waits for nothing. */
  tell(): void
  watch(onWork: () => void): Promise<Watch>
  close(): void
}

// A message that does not come by then does not come: the client may not subscribe, or a proxy is between.
const echoMs = 1000

/** Makes the hints of one store. One message is on its way at a time: they say nothing but "look". */
export function createHints(connection: Connection, prefix: string): Hints {
  const channel = `{${prefix}}:work`
  const watchers = new Set<() => void>()
  let telling = false
  let tellAgain = false
  let subscriber: Subscriber | undefined
  let listening: Promise<boolean> | undefined
  let heard: (() => void) | undefined

  async function publish(): Promise<void> {
    telling = true
    do {
      tellAgain = false
      await connection.command('publish', [channel, '']).catch(() => {})
    } while (tellAgain)
    telling = false
  }

  /** Subscribes, and finds out whether what is published is heard. */
  async function listen(): Promise<boolean> {
    subscriber = subscriberOf(connection.client)
    if (subscriber === undefined) return false
    subscriber.on('error', () => {})
    subscriber.on('message', (from) => {
      if (from !== channel) return
      heard?.()
      for (const onWork of watchers) onWork()
    })
    const echo = new Promise<boolean>((resolve) => {
      heard = () => resolve(true)
      setTimeout(resolve, echoMs, false)
    })
    // A client that has no connection subscribes when it has one; nobody waits for that.
    subscriber.subscribe(channel).then(publish, () => {})
    const isHeard = await echo
    heard = undefined
    return isHeard
  }

  function stopListening(): void {
    subscriber?.disconnect()
    subscriber = undefined
    listening = undefined
  }

  return {
    tell() {
      for (const onWork of watchers) onWork()
      if (telling) tellAgain = true
      else publish()
    },

    async watch(onWork) {
      // One function may be watching twice: each watch is its own.
      const watcher = (): void => onWork()
      watchers.add(watcher)
      listening ??= listen()
      return {
        reach: (await listening) ? 'all' : 'instance',
        async close() {
          watchers.delete(watcher)
          if (watchers.size === 0) stopListening()
        },
      }
    },

    close() {
      watchers.clear()
      stopListening()
    },
  }
}

// A connection that subscribes can do nothing else: the caller's own is left alone.
function subscriberOf(client: RedisClient): Subscriber | undefined {
  return typeof client.duplicate === 'function' ? client.duplicate() : undefined
}
