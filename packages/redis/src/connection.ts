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

/** What a script does in one shard. */
export interface Job {
  readonly shard: Shard
  /** The records. */
  readonly keys: readonly string[]
  readonly args: readonly (string | Buffer)[]
}

/** The caller's client, with a deadline on every call. */
export interface Connection {
  readonly client: RedisClient
  /** Whether shards may be on several nodes. */
  readonly isCluster: boolean
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
  /** The same on several shards at once, which in a cluster have to be on one node. Throws when one of them fails. */
  runAll(
    script: Script,
    jobs: readonly Job[],
    options?: { readonly replicate?: boolean },
  ): Promise<readonly unknown[]>
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
  ): Promise<readonly { readonly error: unknown; readonly reply: unknown }[]> {
    // A pipeline, and not callBuffer(): that loses the command's name under "enableAutoPipelining".
    const answers = await node
      .pipeline(commands.map((command) => ['callBuffer', ...command]))
      .exec()
    return commands.map((_, index) => {
      const [error, reply] = answers?.[index] ?? [
        new Error('The client gave no answer.'),
        undefined,
      ]
      return { error, reply }
    })
  }

  // One pipeline for all, so that the wait goes to the node, and over the connection, of the writes.
  async function evaluate(
    script: Script,
    jobs: readonly Job[],
    wait: ReplicaWait | undefined,
  ): Promise<readonly unknown[]> {
    const calls = jobs.map(({ shard, keys, args }) => [
      shard.keys.length + keys.length,
      ...shard.keys,
      ...keys,
      ...args,
    ])
    const more = wait === undefined ? [] : [['wait', wait.count, wait.timeoutMs]]
    const answers = [
      ...(await send(client, [...calls.map((call) => ['evalsha', script.hash, ...call]), ...more])),
    ]
    // What the server knew has been run, and is not to be run again.
    const unknown = calls.flatMap((call, index) =>
      isUnknownScript(answers[index]?.error) ? [{ call, index }] : [],
    )
    if (unknown.length > 0) {
      const again = await send(client, [
        ...unknown.map(({ call }) => ['eval', script.text, ...call]),
        ...more,
      ])
      for (const [at, answer] of again.entries())
        answers[unknown[at]?.index ?? calls.length] = answer
    }
    const replies = answers.map(({ error, reply }) => {
      if (error) throw error
      return reply
    })
    if (wait === undefined) return replies
    const confirmed = Number(replies.pop())
    if (confirmed >= wait.count) return replies
    throw storeUnavailable(
      `Only ${confirmed} of ${wait.count} replicas confirmed "${script.name}" within ${wait.timeoutMs} ms.`,
    )
  }

  const runAll: Connection['runAll'] = (script, jobs, { replicate = false } = {}) => {
    const wait = replicate ? waitForReplicas : undefined
    return within(script.name, client, () => evaluate(script, jobs, wait))
  }

  return {
    client,
    isCluster: client.nodes !== undefined,
    shards,
    timeoutMs,
    runAll,

    async run(script, shard, keys, args, options) {
      const [reply] = await runAll(script, [{ shard, keys, args }], options)
      return reply
    },

    command: (name, args, node = client) =>
      within(name, node, async () => {
        const [answer] = await send(node, [[name, ...args]])
        if (answer?.error) throw answer.error
        return answer?.reply
      }),

    close() {
      closed = true
    },
  }
}

function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
