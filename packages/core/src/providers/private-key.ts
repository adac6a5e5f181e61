/** Signs with a private key: for tests, and for services that send. Receiving never needs it. */
import { fromBase64, toBase64, toHex } from '../crypto/bytes.ts'
import { ecdsaToDer } from '../crypto/der.ts'
import { optionError } from '../errors.ts'
import type { PublicKeySignature } from './provider.ts'

/** The signature as the sender writes it, without a prefix. */
export async function signPublicly(
  signature: PublicKeySignature,
  pem: string,
  content: Uint8Array,
): Promise<string> {
  const algorithm =
    signature.scheme === 'ed25519'
      ? { name: 'Ed25519' }
      : signature.scheme === 'ecdsa-p256'
        ? { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
        : { name: 'RSASSA-PKCS1-v1_5', hash: signature.hash ?? 'SHA-256' }
  const key = await importPrivateKey(pem, algorithm)
  const raw = new Uint8Array(await crypto.subtle.sign(algorithm, key, new Uint8Array(content)))
  const bytes = signature.scheme === 'ecdsa-p256' ? ecdsaToDer(raw) : raw
  return signature.encoding === 'hex' ? toHex(bytes) : toBase64(bytes)
}

async function importPrivateKey(
  pem: string,
  algorithm: { readonly name: string },
): Promise<Awaited<ReturnType<typeof crypto.subtle.importKey>>> {
  const found = /-----BEGIN PRIVATE KEY-----([\s\S]+?)-----END PRIVATE KEY-----/.exec(pem)
  const der = fromBase64((found?.[1] ?? '').replaceAll(/\s/g, ''))
  if (der === undefined || der.length === 0) {
    throw optionError(
      'signatureHeaders: "secret" must be the private key of the sender, PKCS #8 in PEM (-----BEGIN PRIVATE KEY-----).',
    )
  }
  return crypto.subtle.importKey('pkcs8', new Uint8Array(der), algorithm, false, ['sign'])
}
