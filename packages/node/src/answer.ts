/** Writes an answer of the core to a Node response. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Answer } from '@webhook-inbox/core'

/** How long the rest of an unread request is taken from the wire, so that its sender gets to read the answer. */
const lingerMs = 1000

/**
 * Answers a request. When bytes of the request are still on their way the connection closes after the answer: the
 * next request on it would wait behind them. Does nothing when the sender is gone or an answer is under way.
 */
export function writeAnswer(req: IncomingMessage, res: ServerResponse, answer: Answer): void {
  if (res.headersSent || res.writableEnded || res.destroyed) return
  res.statusCode = answer.status
  for (const [name, value] of Object.entries(answer.headers)) res.setHeader(name, value)
  const body = Buffer.from(answer.body, 'utf8')
  // An answer without content states no length either.
  if (answer.status !== 204 && answer.status !== 304) res.setHeader('content-length', body.length)
  if (req.complete) {
    res.end(req.method === 'HEAD' ? undefined : body)
    if (!req.readableEnded) req.resume()
    return
  }
  if (req.httpVersionMajor < 2) res.setHeader('connection', 'close')
  if (req.method === 'HEAD') res.flushHeaders()
  else res.write(body)
  linger(req, res)
}

// Closing a socket that has unread bytes resets it, and a reset can destroy the answer before it is read.
function linger(req: IncomingMessage, res: ServerResponse): void {
  const finish = (): void => {
    clearTimeout(timer)
    req.off('end', finish)
    req.off('close', finish)
    res.end()
  }
  const timer = setTimeout(finish, lingerMs)
  req.on('end', finish)
  req.on('close', finish)
  req.resume()
}
