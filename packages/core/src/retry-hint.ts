/** When the next attempt may succeed, as an error says it. */
import { hasCode } from './errors.ts'

// A hint beyond this is a mistake or an attack of the API that gave it.
const longestHintMs = 7 * 86_400_000

/**
 * What a thrown value says about the next attempt, in milliseconds from now: `retryInMs` of a `RetryError`, or a
 * `Retry-After` (seconds or an HTTP date) that an HTTP client left in `retryAfter`, `headers` or `response.headers`.
 * Undefined when it says nothing usable.
 */
export function retryHintMs(error: unknown, nowMs: number = Date.now()): number | undefined {
  try {
    const hint = hasCode(error, 'ERR_RETRY')
      ? Number(read(error, 'retryInMs'))
      : delayOf(retryAfterOf(error), nowMs)
    return hint === undefined || !(hint >= 0) ? undefined : Math.min(Math.ceil(hint), longestHintMs)
  } catch {
    // Anything can be thrown, getters that throw among it.
    return undefined
  }
}

function retryAfterOf(error: unknown): unknown {
  return (
    read(error, 'retryAfter') ??
    headerOf(read(error, 'headers')) ??
    headerOf(read(read(error, 'response'), 'headers'))
  )
}

function headerOf(headers: unknown): unknown {
  const get = read(headers, 'get')
  if (typeof get === 'function') return get.call(headers, 'retry-after') ?? undefined
  return read(headers, 'retry-after')
}

function delayOf(value: unknown, nowMs: number): number | undefined {
  if (typeof value === 'number') return value * 1000
  if (typeof value !== 'string' || value.trim() === '') return undefined
  if (/^\d+(\.\d+)?$/.test(value.trim())) return Number(value) * 1000
  const at = Date.parse(value)
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs)
}

function read(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}
