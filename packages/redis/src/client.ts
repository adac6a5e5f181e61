/**
 * An ioredis client, by its shape: `Redis` (standalone or Sentinel) and `Cluster` of ioredis 5 and 6 fit as they are.
 */
export interface RedisClient {
  /** `ready` when commands can be sent. */
  readonly status: string
  pipeline(commands: unknown[][]): { exec(): Promise<[error: unknown, reply: unknown][] | null> }
  /** Of a `Cluster` only. */
  nodes?(role: 'master'): RedisClient[]
  /** A connection of its own, for hearing of new work. */
  duplicate?(): Subscriber
}

/** The part of a client that hears messages. */
export interface Subscriber {
  on(event: 'error', listener: () => void): unknown
  on(event: 'message', listener: (channel: string) => void): unknown
  subscribe(channel: string): Promise<unknown>
  disconnect(): void
}

/** Whether a value has the shape of an ioredis client. */
export function isRedisClient(value: unknown): value is RedisClient {
  if (typeof value !== 'object' || value === null) return false
  return (
    typeof Reflect.get(value, 'status') === 'string' &&
    typeof Reflect.get(value, 'pipeline') === 'function'
  )
}

/** What a value that does not fit most likely is, and what to pass instead. */
export function whatInstead(value: unknown): string {
  const fix =
    'Pass an ioredis client: new Redis(process.env.REDIS_URL), or new Redis.Cluster([…]), from "ioredis" 5 or 6.'
  if (typeof value === 'string') return `"client" is a text. ${fix}`
  if (value instanceof Promise) return `"client" is a promise. ${fix}`
  if (typeof value === 'object' && value !== null && 'sendCommand' in value && 'isOpen' in value)
    return `"client" is a node-redis client ("redis" on npm). ${fix}`
  if (typeof value === 'object' && value !== null && 'isPipeline' in value)
    return `"client" is a pipeline. ${fix}`
  return `"client" is not an ioredis client. ${fix}`
}
