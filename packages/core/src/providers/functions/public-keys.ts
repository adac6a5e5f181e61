/** Certificates and keys that a sender names: fetched once, and only from where it publishes them. */
import { backend } from '#crypto'
import { spkiOfPem } from '../../crypto/der.ts'
import type { PublicKey, PublicKeyAlgorithm } from '../../crypto/types.ts'
import type { KeyRequest, KeySource } from '../provider.ts'

const fetchTimeoutMs = 5000
const longestPemBytes = 64 * 1024
const mostCached = 100
// Whoever names an address in an unsigned request makes this process ask it: not more often than that.
const mostFetches = 30
const perMs = 60_000

const cached = new Map<string, Promise<Uint8Array>>()
let fetches: readonly number[] = []

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
    const spki = keys === undefined ? await fetchOnce(url) : spkiOf(await askKeys(keys, { url }))
    return await backend.importPublicKey(algorithm, spki)
  } catch {
    return undefined
  }
}

async function askKeys(keys: KeySource, request: KeyRequest): Promise<unknown> {
  return keys(request)
}

function spkiOf(pem: unknown): Uint8Array {
  const spki = typeof pem === 'string' ? spkiOfPem(pem) : undefined
  if (spki === undefined) throw new Error('That is no certificate and no public key in PEM.')
  return spki
}

function fetchOnce(url: string): Promise<Uint8Array> {
  const known = cached.get(url)
  if (known !== undefined) return known
  const nowMs = performance.now()
  fetches = [...fetches.filter((atMs) => atMs > nowMs - perMs), nowMs]
  if (fetches.length > mostFetches) {
    fetches = fetches.slice(0, mostFetches)
    return Promise.reject(new Error('Too many addresses of certificates were named.'))
  }
  // What is no certificate is forgotten like one that could not be had.
  const fetching = fetchText(url).then(spkiOf)
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
