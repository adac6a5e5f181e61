/** The little of DER that public keys and signatures need. Strict: what is not written as DER writes it is nothing. */
import { concatBytes, fromBase64 } from './bytes.ts'

const sequence = 0x30
const integer = 0x02
const versionTag = 0xa0

interface Element {
  readonly tag: number
  readonly content: Uint8Array
  /** Tag, length and content. */
  readonly whole: Uint8Array
}

/** The elements that these bytes are made of; undefined when they are not exactly that. */
function readElements(bytes: Uint8Array): readonly Element[] | undefined {
  const elements: Element[] = []
  let at = 0
  while (at < bytes.length) {
    const start = at
    const tag = bytes[at++]
    let length = bytes[at++]
    if (tag === undefined || length === undefined) return undefined
    if (length >= 0x80) {
      const count = length & 0x7f
      if (count === 0 || count > 3) return undefined
      length = 0
      for (let index = 0; index < count; index++) length = length * 256 + (bytes[at++] ?? 0)
      const shortest = length < 0x80 ? 0 : length < 0x100 ? 1 : length < 0x1_0000 ? 2 : 3
      if (shortest !== count) return undefined
    }
    const end = at + length
    if (end > bytes.length) return undefined
    elements.push({ tag, content: bytes.subarray(at, end), whole: bytes.subarray(start, end) })
    at = end
  }
  return elements
}

function readSequence(bytes: Uint8Array): readonly Element[] | undefined {
  const [outer, ...others] = readElements(bytes) ?? []
  if (outer?.tag !== sequence || others.length > 0) return undefined
  return readElements(outer.content)
}

/** The 64 bytes of an ECDSA P-256 signature in DER. */
export function ecdsaFromDer(bytes: Uint8Array): Uint8Array | undefined {
  const numbers = readSequence(bytes)
  if (numbers?.length !== 2) return undefined
  const parts: Uint8Array[] = []
  for (const { tag, content } of numbers) {
    const [first, second = 0] = content
    if (tag !== integer || first === undefined || first >= 0x80) return undefined
    // A leading zero stands only where the number would be negative without it.
    const isPadded = first === 0 && content.length > 1
    if (isPadded && second < 0x80) return undefined
    const digits = isPadded ? content.subarray(1) : content
    if (digits.length > 32) return undefined
    parts.push(new Uint8Array(32 - digits.length), digits)
  }
  return concatBytes(parts)
}

/** The public key (SPKI) inside an X.509 certificate. */
export function spkiOfCertificate(der: Uint8Array): Uint8Array | undefined {
  const certificate = readSequence(der)?.[0]
  const fields = certificate?.tag === sequence ? readElements(certificate.content) : undefined
  if (fields === undefined) return undefined
  // serial, algorithm, issuer, validity, subject, key; before them a version, which old certificates lack.
  const key = fields[fields[0]?.tag === versionTag ? 6 : 5]
  return key?.tag === sequence ? key.whole : undefined
}

const ed25519Header = Uint8Array.of(0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0)

/** SPKI of the 32 raw bytes of an Ed25519 public key. */
export function spkiOfEd25519(raw: Uint8Array): Uint8Array {
  return concatBytes([ed25519Header, raw])
}

/** SPKI out of PEM, a public key or a certificate. */
export function spkiOfPem(pem: string): Uint8Array | undefined {
  const found = /-----BEGIN (PUBLIC KEY|CERTIFICATE)-----([\s\S]+?)-----END \1-----/.exec(pem)
  const der = found === null ? undefined : fromBase64((found[2] ?? '').replaceAll(/\s/g, ''))
  if (der === undefined) return undefined
  return found?.[1] === 'CERTIFICATE' ? spkiOfCertificate(der) : der
}

/** The DER of an ECDSA signature of two halves. */
export function ecdsaToDer(raw: Uint8Array): Uint8Array {
  const half = raw.length / 2
  const numbers = [raw.subarray(0, half), raw.subarray(half)].map((number) => {
    const start = number.findIndex((byte) => byte !== 0)
    const digits = number.subarray(start === -1 ? number.length - 1 : start)
    const padded = (digits[0] ?? 0) >= 0x80 ? concatBytes([Uint8Array.of(0), digits]) : digits
    return concatBytes([Uint8Array.of(integer, padded.length), padded])
  })
  const content = concatBytes(numbers)
  return concatBytes([Uint8Array.of(sequence, content.length), content])
}
