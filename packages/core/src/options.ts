import { optionError } from './errors.ts'

// A timer takes 31 bits; longer waits would fire at once.
const longestTimerMs = 2_147_483_647

// Beyond the year 2200 a fence, which is a thousand times the clock, would be no safe integer.
const longestClockMs = 7_258_118_400_000

// A hundred years: beyond the safe integers no database gives a time back as a number.
const longestRetentionMs = 36_525 * 86_400_000

/** A duration in whole milliseconds, 1 to the longest timer. Zero is a mistake, not "unset". */
export function durationOption(
  where: string,
  name: string,
  value: unknown,
  fallback: number,
): number {
  if (value === undefined) return fallback
  if (isCount(value) && value <= longestTimerMs) return value
  throw optionError(
    `${where}: "${name}" must be a whole number of milliseconds from 1 to ${longestTimerMs}, for instance ${fallback}.`,
  )
}

/** A retention in whole milliseconds, 1 to a hundred years; may be longer than any timer. */
export function retentionOption(
  where: string,
  name: string,
  value: unknown,
  fallback: number,
): number {
  if (value === undefined) return fallback
  if (isCount(value) && value <= longestRetentionMs) return value
  throw optionError(
    `${where}: "${name}" must be a whole number of milliseconds from 1 to ${longestRetentionMs} (a hundred years), for instance ${fallback}.`,
  )
}

/** A positive whole number of bytes. */
export function sizeOption(where: string, name: string, value: unknown, fallback: number): number {
  if (value === undefined) return fallback
  if (isCount(value)) return value
  throw optionError(
    `${where}: "${name}" must be a positive whole number of bytes, for instance ${fallback}.`,
  )
}

/**
 * How many records a call may touch. For stores.
 * @throws WebhookInboxError `ERR_OPTION` when it is no whole number from 1 to `most`
 */
export function limitOption(where: string, value: unknown, most: number): number {
  if (isCount(value) && value <= most) return value
  throw optionError(`${where}: "limit" must be a whole number from 1 to ${most}.`)
}

/**
 * The time of a store's clock in whole epoch milliseconds. For stores: a clock that tells no time would end every
 * lease, or none.
 * @throws WebhookInboxError `ERR_OPTION` when `now` gives anything but a time
 */
export function readClock(where: string, now: () => unknown): number {
  const nowMs = now()
  if (typeof nowMs === 'number' && nowMs >= 0 && nowMs <= longestClockMs) return Math.floor(nowMs)
  throw optionError(`${where}: "now" must give epoch milliseconds, a number as of Date.now().`)
}

/** Raw bytes. Text and other views of memory are refused: they are not what was signed, or not for sure. */
export function bytesOption(where: string, name: string, value: unknown): Uint8Array {
  if (isBytes(value)) return value
  throw optionError(
    `${where}: "${name}" must be the raw bytes as they came, in a Uint8Array (a Buffer is one). Write new Uint8Array(buffer) for an ArrayBuffer, new TextEncoder().encode(text) for text that was never parsed.`,
  )
}

// By its tag: the bytes of another realm are no instance of ours.
function isBytes(value: unknown): value is Uint8Array {
  return (
    ArrayBuffer.isView(value) && Object.prototype.toString.call(value) === '[object Uint8Array]'
  )
}

/** A positive whole number, or undefined when it is not given. */
export function countOption(where: string, name: string, value: unknown): number | undefined {
  if (value === undefined || isCount(value)) return value
  throw optionError(`${where}: "${name}" must be a positive whole number.`)
}

export function functionOption(where: string, name: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') {
    throw optionError(`${where}: "${name}" must be a function.`)
  }
}

export function booleanOption(where: string, name: string, value: unknown): boolean {
  if (value === undefined || typeof value === 'boolean') return value === true
  throw optionError(`${where}: "${name}" must be true or false.`)
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
}
