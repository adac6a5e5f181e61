/** Senders that sign the body as ASCII with escapes, whatever is on the wire. */
import { concatBytes, utf8 } from '../../crypto/bytes.ts'
import type { ContentCandidates, SignedRequest } from '../provider.ts'

/** The body with every character beyond ASCII as `\uXXXX`, or as it is. */
export function metaContent({ body }: SignedRequest): ContentCandidates {
  const text = textOf(body)
  if (text === undefined || isAscii(text)) return [body]
  return [utf8(escaped(text, /[\u007f-\uffff]/g)), body]
}

/** Body and time, the body raw or with escapes; of those slashes too. */
export function boxContent({ body, headers }: SignedRequest): ContentCandidates {
  const time = headers['box-delivery-timestamp']
  if (time === undefined) return []
  const text = textOf(body)
  const raw = concatBytes([body, utf8(time)])
  if (text === undefined) return [raw]
  const slashed = escaped(text, /[\u007f-\uffff]/g).replaceAll(/(?<!\\)\//g, '\\/')
  return slashed === text ? [raw] : [raw, utf8(slashed + time)]
}

function isAscii(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what ASCII is
  return /^[\u0000-\u007e]*$/.test(text)
}

function escaped(text: string, beyond: RegExp): string {
  return text.replaceAll(beyond, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

// What is no text has no escaped form.
function textOf(body: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return undefined
  }
}
