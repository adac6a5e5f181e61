/** The raw bytes of a Node request, wherever they are by now. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { BodyResult } from '@webhook-inbox/core'
import getRawBody from 'raw-body'

/**
 * Keeps the bytes that a body parser reads, for a webhook middleware that is mounted after it:
 * `express.json({ verify: captureRawBody })`. Works with every parser of body-parser.
 */
export function captureRawBody(
  req: IncomingMessage,
  _res: ServerResponse,
  bytes: Uint8Array,
): void {
  req.rawBody = bytes
}

/**
 * The bytes of the body exactly as they came: from the unread stream, from `req.rawBody`, or from `req.body` when
 * that is bytes. Text counts only when it is provably loss-free; a parsed object never does. Never rejects and
 * never waits for a stream that somebody else has emptied.
 */
export async function readNodeBody(req: IncomingMessage, maxBytes: number): Promise<BodyResult> {
  if (!isConsumed(req)) return readStream(req, maxBytes)
  for (const kept of [req.rawBody, bodyOf(req)]) {
    const bytes = kept instanceof Uint8Array ? kept : bytesOfText(req, kept)
    if (bytes === undefined) continue
    return bytes.length > maxBytes ? { ok: false, code: 'body_too_large' } : { ok: true, bytes }
  }
  if (req.readableEnded && isEmptyByHead(req)) return { ok: true, bytes: new Uint8Array() }
  return { ok: false, code: 'ERR_BODY_CONSUMED' }
}

// Some platforms parse a body when it is asked for, and throw what the parser throws.
function bodyOf(req: IncomingMessage): unknown {
  try {
    return Reflect.get(req, 'body')
  } catch {
    return undefined
  }
}

// A 'data' listener alone takes nothing away: until the first chunk is out, every listener gets all of them.
function isConsumed(req: IncomingMessage): boolean {
  return (
    req.readableDidRead ||
    req.readableEnded ||
    req.readableEncoding !== null ||
    req.listenerCount('readable') > 0
  )
}

// HTTP/2 needs no length for a body, HTTP/1 needs a length or chunks.
function isEmptyByHead(req: IncomingMessage): boolean {
  const length = contentLengthOf(req)
  if (length !== undefined) return length === 0
  return req.httpVersionMajor < 2 && req.headers['transfer-encoding'] === undefined
}

// Replacement characters or another length say that decoding lost something; without a length nothing says that it
// did not.
function bytesOfText(req: IncomingMessage, text: unknown): Uint8Array | undefined {
  if (typeof text !== 'string' || text.includes('\uFFFD')) return undefined
  const bytes = Buffer.from(text, 'utf8')
  return bytes.length === contentLengthOf(req) ? bytes : undefined
}

function contentLengthOf({ headers }: IncomingMessage): number | undefined {
  const length = headers['content-length']
  return length === undefined ? undefined : Number(length)
}

function readStream(req: IncomingMessage, maxBytes: number): Promise<BodyResult> {
  return new Promise((resolve) => {
    const incomplete = (): void => end({ ok: false, code: 'body_incomplete' })
    // Somebody who pauses the stream while it is read (a slow pipe, a paused request) must not stop the reading.
    const resume = (): void => void req.resume()

    function end(result: BodyResult): void {
      req.off('close', incomplete)
      req.off('pause', resume)
      resolve(result)
    }

    const length = contentLengthOf(req)
    getRawBody(req, { limit: maxBytes, length: length ?? null }, (error, bytes) => {
      end(error ? { ok: false, code: codeOf(error) } : { ok: true, bytes })
    })
    req.on('close', incomplete)
    req.on('pause', resume)
    req.resume()
  })
}

function codeOf(error: { readonly type?: string }): 'body_too_large' | 'body_incomplete' {
  return error.type === 'entity.too.large' ? 'body_too_large' : 'body_incomplete'
}
