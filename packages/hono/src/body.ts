import { type BodyResult, readRequestBody } from '@webhook-inbox/core'
import type { HonoRequest } from 'hono'

const consumed: BodyResult = { ok: false, code: 'ERR_BODY_CONSUMED' }

/**
 * The bytes of a request, read from the socket or taken from what an earlier middleware had Hono keep. Afterwards
 * `c.req.json()` and its siblings, `c.req.raw.json()` and `c.req.raw.clone()` work as if nobody had read.
 * Never rejects.
 */
export async function readBody(request: HonoRequest, maxBytes: number): Promise<BodyResult> {
  const body = (await keptBody(request, maxBytes)) ?? (await readRequestBody(request.raw, maxBytes))
  if (body.ok) giveBack(request, body.bytes)
  return body
}

/** What Hono keeps of a body that was read through `c.req`; undefined when it was not read that way. */
async function keptBody(request: HonoRequest, maxBytes: number): Promise<BodyResult | undefined> {
  // Typed as values, kept as promises: awaiting fits both.
  const { arrayBuffer, blob, text } = request.bodyCache
  try {
    if (arrayBuffer !== undefined) return within(maxBytes, new Uint8Array(await arrayBuffer))
    if (blob !== undefined)
      return within(maxBytes, new Uint8Array(await (await blob).arrayBuffer()))
    if (text !== undefined) return encoded(await text, request.header('content-length'), maxBytes)
  } catch {
    return consumed
  }
  return undefined
}

// Decoding drops a byte order mark and replaces invalid bytes: only a text that shows neither is the body.
function encoded(text: string, contentLength: string | undefined, maxBytes: number): BodyResult {
  const bytes = new TextEncoder().encode(text)
  const isExact = !text.includes('\ufffd') && String(bytes.length) === contentLength
  return isExact ? within(maxBytes, bytes) : consumed
}

function within(maxBytes: number, bytes: Uint8Array): BodyResult {
  return bytes.length > maxBytes ? { ok: false, code: 'body_too_large' } : { ok: true, bytes }
}

// A blob, because it carries its type: out of a buffer Hono before 4.13 makes no form.
function giveBack(request: HonoRequest, bytes: Uint8Array): void {
  const body = new Blob([bytes], { type: request.header('content-type') ?? '' })
  Reflect.set(request.bodyCache, 'blob', Promise.resolve(body))
  request.raw = new Request(request.raw, { body })
}
