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
