/** Certificates and keys that a sender names: fetched once, and only from where it publishes them. */
import { backend } from '#crypto'
import { spkiOfPem } from '../../crypto/der.ts'
import type { PublicKey, PublicKeyAlgorithm } from '../../crypto/types.ts'
import type { KeyRequest, KeySource } from '../provider.ts'

const fetchTimeoutMs = 5000
const longestPemBytes = 64 * 1024
const mostCached = 100

const cached = new Map<string, Promise<string>>()

/**
 * The public key of a certificate at an address that the caller has found to be the sender's; undefined when it
 * cannot be had or is none.
 */
export async function certificateKey(
  url: string,
  algorithm: PublicKeyAlgorithm,
  keys: KeySource | undefined,
): Promise<PublicKey | undefined> {
  try {
    const pem = keys === undefined ? await fetchOnce(url) : await askKeys(keys, { url })
    const spki = typeof pem === 'string' ? spkiOfPem(pem) : undefined
    return spki === undefined ? undefined : await backend.importPublicKey(algorithm, spki)
  } catch {
    return undefined
  }
}

async function askKeys(keys: KeySource, request: KeyRequest): Promise<unknown> {
  return keys(request)
}

function fetchOnce(url: string): Promise<string> {
  const known = cached.get(url)
  if (known !== undefined) return known
  const fetching = fetchText(url)
  const oldest = cached.size < mostCached ? undefined : cached.keys().next().value
  if (oldest !== undefined) cached.delete(oldest)
  cached.set(url, fetching)
  fetching.catch(() => cached.delete(url)) // the next request asks again
  return fetching
}

async function fetchText(url: string): Promise<string> {
  // A redirect may lead away from the sender's own host.
  const response = await fetch(url, {
    redirect: 'error',
    signal: AbortSignal.timeout(fetchTimeoutMs),
  })
  const text = await response.text()
  if (!response.ok || text.length > longestPemBytes)
    throw new Error(`No certificate at ${new URL(url).host}: status ${response.status}.`)
  return text
}
