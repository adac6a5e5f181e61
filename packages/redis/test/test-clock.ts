import { createHash } from 'node:crypto'
import type { RedisClient } from '../src/client.ts'

/** The part of a client of one node that moving the clock needs. */
interface Node {
  keys(pattern: string): Promise<string[]>
  pttl(key: string): Promise<number>
  pexpire(key: string, ms: number): Promise<number>
}

/** A clock that stands still until a test moves it. */
export interface TestClock {
  /** The client, whose scripts read this clock where they would read that of Redis. Nothing else of them is changed. */
  wrap<Client extends RedisClient>(client: Client): Client
  /** Moves the clock, and what is left of the keys under a prefix. */
  advance(ms: number, nodes: readonly Node[], prefix: string): Promise<void>
}

const readsTime = "redis.call('TIME')"
const unknownHash = '0'.repeat(40)

export function createTestClock(): TestClock {
  let nowMs = Date.now()
  const texts = new Map<string, string>()

  function onTime(text: string): string {
    if (!text.includes(readsTime)) throw new Error('A script does not read the clock.')
    return text.replaceAll(readsTime, `{ ${Math.floor(nowMs / 1000)}, ${(nowMs % 1000) * 1000} }`)
  }

  function rewrite(command: unknown[]): unknown[] {
    const [call, name, script, ...rest] = command
    if (typeof script !== 'string') return command
    if (name === 'eval') {
      texts.set(hashOf(script), script)
      return [call, name, onTime(script), ...rest]
    }
    if (name !== 'evalsha') return command
    // A script that was never sent in full is not known to the server, whatever else runs there.
    const text = texts.get(script)
    return [call, name, text === undefined ? unknownHash : hashOf(onTime(text)), ...rest]
  }

  return {
    wrap: (client) =>
      new Proxy(client, {
        get(target, name) {
          if (name === 'pipeline')
            return (commands: unknown[][]) => target.pipeline(commands.map(rewrite))
          const value: unknown = Reflect.get(target, name)
          return typeof value === 'function' ? value.bind(target) : value
        },
      }),

    async advance(ms, nodes, prefix) {
      nowMs += ms
      await Promise.all(
        nodes.map(async (node) => {
          for (const key of await node.keys(`{${prefix}:*}:*`)) {
            const leftMs = await node.pttl(key)
            // One whose time is over goes by this too.
            if (leftMs >= 0) await node.pexpire(key, leftMs - ms)
          }
        }),
      )
    },
  }
}

function hashOf(text: string): string {
  return createHash('sha1').update(text).digest('hex')
}
