/** Certificates and keys that a sender names: fetched once, and only from where it publishes them. */
import { backend } from '#crypto'
import { spkiOfPem } from '../../crypto/der.ts'
import type { PublicKey, PublicKeyAlgorithm } from '../../crypto/types.ts'
import type { KeyRequest, KeySource } from '../provider.ts'

const fetchTimeoutMs = 5000
const longestPemBytes = 64 * 1024
const mostCached = 100
// Whoever names an address in an unsigned request makes this process ask it: one host is asked no more at a time.
const mostAtOnce = 10

const cached = new Map<string, Uint8Array>()
const underWay = new Map<string, Promise<Uint8Array>>()

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

async function fetchOnce(url: string): Promise<Uint8Array> {
  const known = cached.get(url) ?? underWay.get(url)
  if (known !== undefined) return known
  const { host } = new URL(url)
  const ofHost = [...underWay.keys()].filter((other) => new URL(other).host === host)
  if (ofHost.length >= mostAtOnce) throw new Error(`${host} is asked for many certificates now.`)
  const fetching = fetchKey(url)
  underWay.set(url, fetching)
  // What is no certificate is forgotten like one that could not be had: the next request asks again.
  return fetching.finally(() => underWay.delete(url))
}

async function fetchKey(url: string): Promise<Uint8Array> {
  const spki = spkiOf(await fetchText(url))
  const oldest = cached.size < mostCached ? undefined : cached.keys().next().value
  if (oldest !== undefined) cached.delete(oldest)
  cached.set(url, spki)
  return spki
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
