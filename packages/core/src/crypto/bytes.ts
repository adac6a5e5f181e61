const encoder = new TextEncoder()

export function utf8(text: string): Uint8Array {
  return encoder.encode(text)
}

export function toHex(bytes: Uint8Array): string {
  let text = ''
  for (const byte of bytes) text += hexOf[byte]
  return text
}

const hexOf = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

/** Standard base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  let text = ''
  // In pieces: a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(text)
}

/** base64url without padding. */
export function toBase64Url(bytes: Uint8Array): string {
  return toBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Bytes of hex in either case; undefined for what is none. */
export function fromHex(text: string): Uint8Array | undefined {
  if (text.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(text)) return undefined
  const bytes = new Uint8Array(text.length / 2)
  for (let at = 0; at < bytes.length; at++)
    bytes[at] = Number.parseInt(text.slice(at * 2, at * 2 + 2), 16)
  return bytes
}

/**
 * Bytes of standard base64; undefined for what is none, and for a text that is not the one way to write its bytes: two
 * texts for one signature would be two signatures.
 */
export function fromBase64(text: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined
  let binary: string
  try {
    binary = atob(text)
  } catch {
    return undefined
  }
  const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0))
  return toBase64(bytes) === text ? bytes : undefined
}

/** One array of all. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array {
  const [only] = parts
  if (only !== undefined && parts.length === 1) return only
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let offset = 0
  for (const part of parts) {
    bytes.set(part, offset)
    offset += part.length
  }
  return bytes
}

/**
 * Compares in a time that depends on the lengths only, which are no secret. A difference in length is a
 * mismatch, not an error.
 */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) difference |= (a[index] ?? 0) ^ (b[index] ?? 0)
  return difference === 0
}

export function randomToken(): string {
  return toHex(crypto.getRandomValues(new Uint8Array(16)))
}
