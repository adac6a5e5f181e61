import { createHash } from 'node:crypto'

/** A Lua script, called by its hash. */
export interface Script {
  /** For messages. */
  readonly name: string
  readonly text: string
  readonly hash: string
}

export function defineScript(name: string, text: string): Script {
  return Object.freeze({ name, text, hash: createHash('sha1').update(text).digest('hex') })
}

/** A bulk string of a reply as text. */
export function textOf(reply: unknown): string {
  if (Buffer.isBuffer(reply)) return reply.toString()
  if (typeof reply === 'string') return reply
  throw new TypeError('Redis answered with something else than a text.')
}

/** A list in a reply. */
export function listOf(reply: unknown): readonly unknown[] {
  if (Array.isArray(reply)) return reply
  throw new TypeError('Redis answered with something else than a list.')
}
