import { storeUnavailable } from '@webhook-inbox/core'
import type { RedisClient } from './client.ts'
import { asStoreError, isAboutOneRecord } from './errors.ts'
import type { Shard } from './key.ts'
import type { Script } from './script.ts'

export interface ReplicaWait {
  /** Replicas that must have confirmed. */
  readonly count: number
  /** How long to wait for them. */
  readonly timeoutMs: number
}

/** The caller's client, with a deadline on every call. */
export interface Connection {
  readonly client: RedisClient
  readonly shards: readonly Shard[]
  readonly timeoutMs: number
  /**
   * Runs a script on a shard: by its hash, and with its text where the server does not know it.
   * @throws WebhookInboxError `ERR_STORE_UNAVAILABLE`; an error that only one record can have caused is thrown as it is
   */
  run(
    script: Script,
    shard: Shard,
    keys: readonly string[],
    args: readonly (string | Buffer)[],
    options?: { readonly replicate?: boolean },
  ): Promise<unknown>
  /** Sends one command, to the node given or to any. */
  command(name: string, args: readonly string[], node?: RedisClient): Promise<unknown>
  close(): void
}

const pollMs = 10

export function connect(options: {
  readonly client: RedisClient
  readonly shards: readonly Shard[]
  readonly timeoutMs: number
  readonly waitForReplicas: ReplicaWait | undefined
}): Connection {
  const { client, shards, timeoutMs, waitForReplicas } = options
  let closed = false
  let downSinceMs: number | undefined

  // What is handed to a client that has no connection waits in its queue, and runs when nobody waits for it any more.
  async function ready(deadlineMs: number, node: RedisClient): Promise<void> {
    while (!closed) {
      // A lazy client connects at its first command.
      if (node.status === 'ready' || node.status === 'wait') {
        downSinceMs = undefined
        return
      }
      downSinceMs ??= performance.now()
      const nowMs = performance.now()
      if (node.status === 'end' || nowMs >= deadlineMs || nowMs - downSinceMs >= timeoutMs)
        throw storeUnavailable(`Redis is not connected: the client's status is "${node.status}".`)
      await new Promise((resolve) => setTimeout(resolve, pollMs))
    }
    throw storeUnavailable('The Redis store is closed.')
  }

  async function within<T>(what: string, node: RedisClient, call: () => Promise<T>): Promise<T> {
    const deadlineMs = performance.now() + timeoutMs
    await ready(deadlineMs, node)
    let timer: ReturnType<typeof setTimeout> | undefined
    const expired = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(storeUnavailable(`Redis did not answer "${what}" within ${timeoutMs} ms.`)),
        Math.max(1, deadlineMs - performance.now()),
      )
    })
    try {
      return await Promise.race([call(), expired])
    } catch (error) {
      throw isAboutOneRecord(error) ? error : asStoreError(what, error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Sends commands together, and has the replies as bytes. */
  async function send(
    node: RedisClient,
    commands: readonly (readonly (string | Buffer | number)[])[],
  ): Promise<readonly unknown[]> {
    // A pipeline, and not callBuffer(): that loses the command's name under "enableAutoPipelining".
    const answers = await node
      .pipeline(commands.map((command) => ['callBuffer', ...command]))
      .exec()
    return commands.map((_, index) => {
      const [error, reply] = answers?.[index] ?? [new Error('The client gave no answer.')]
      if (error) throw error
      return reply
    })
  }

  // One pipeline for both, so that the wait goes to the node, and over the connection, of the write.
  async function evaluate(
    script: Script,
    rest: readonly (string | Buffer | number)[],
    wait: ReplicaWait | undefined,
  ): Promise<unknown> {
    const more = wait === undefined ? [] : [['wait', wait.count, wait.timeoutMs]]
    const [reply, confirmed] = await send(client, [
      ['evalsha', script.hash, ...rest],
      ...more,
    ]).catch((error: unknown) => {
      if (!isUnknownScript(error)) throw error
      return send(client, [['eval', script.text, ...rest], ...more])
    })
    if (wait === undefined || Number(confirmed) >= wait.count) return reply
    throw storeUnavailable(
      `Only ${Number(confirmed)} of ${wait.count} replicas confirmed "${script.name}" within ${wait.timeoutMs} ms.`,
    )
  }

  return {
    client,
    shards,
    timeoutMs,

    run(script, shard, keys, args, { replicate = false } = {}) {
      const rest = [shard.keys.length + keys.length, ...shard.keys, ...keys, ...args]
      const wait = replicate ? waitForReplicas : undefined
      return within(script.name, client, () => evaluate(script, rest, wait))
    },

    command: (name, args, node = client) =>
      within(name, node, async () => (await send(node, [[name, ...args]]))[0]),

    close() {
      closed = true
    },
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
