/** Answers that a handler has written to Node's response by itself, as @hono/node-server lets it. */
import type { Context } from 'hono'

/** Whether this stands for an answer that is under way. The server looks for the mark on it: it must not be copied. */
export function isSentByHand({ headers }: Response): boolean {
  return headers.has('x-hono-already-sent')
}

/** The status that was sent, once the answer has ended; 500 when it broke off. */
export async function sentStatus(c: Context, response: Response): Promise<number> {
  const outgoing: unknown = c.env?.outgoing
  if (!isOutgoing(outgoing)) return response.status
  if (!outgoing.writableEnded && !outgoing.destroyed)
    await new Promise<void>((resolve) => outgoing.once('close', resolve))
  return outgoing.writableEnded ? outgoing.statusCode : 500
}

interface Outgoing {
  readonly statusCode: number
  readonly writableEnded: boolean
  readonly destroyed: boolean
  once(event: 'close', listener: () => void): unknown
}

function isOutgoing(value: unknown): value is Outgoing {
  return typeof value === 'object' && value !== null && 'once' in value && 'statusCode' in value
}
