/** Senders that put the signature into the body: it has to be read before it is proved. */

/** The decoded JSON of a body; undefined when it is none. Nothing of it may be believed yet. */
export function jsonOf(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}
