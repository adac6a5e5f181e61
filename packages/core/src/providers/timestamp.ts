/** The time that a sender has signed: strictly read, and judged in both directions. */
import { type Readable, readField } from './fields.ts'
import type { SignedRequest, TimestampSource, VerifyCode } from './provider.ts'
import { splitValues } from './split.ts'

/** The text of the time in the request's headers; undefined when there is none, or more than one. */
export function timestampText(
  source: TimestampSource | undefined,
  { headers }: SignedRequest,
): string | undefined {
  if (source?.header === undefined) return undefined
  const value = headers[source.header]
  if (value === undefined) return undefined
  if (source.separator === undefined && source.prefix === undefined) return value.trim()
  const [time, another] = splitValues(value, source)
  return another === undefined ? time : undefined
}

/**
 * Whether a time beside other signed text is the whole of it, and nothing of its neighbours: otherwise whoever has seen
 * one request could move digits between the header and the body, and the rest would be another delivery.
 */
export function isWholeTime(
  text: string | undefined,
  { unit }: Pick<TimestampSource, 'unit'>,
  content: string,
): boolean {
  const [before, after] = content.split('{timestamp}')
  if (before === undefined || after === undefined) return true
  if (text === undefined || readTime(text, unit) === undefined) return false
  const isTight = before.endsWith('}') || after.startsWith('{')
  // A full stop could go on with the fraction of a second.
  if (unit === 'iso')
    return !(isTight || after.startsWith('.')) || /(Z|[+-]\d{2}:\d{2})$/.test(text)
  return !isTight || unit === 'http-date' || text.length === (unit === 's' ? 10 : 13)
}

/** Judges the time that the signature has proved. */
export function checkTimestamp(
  source: TimestampSource,
  text: string | undefined,
  { nowMs, toleranceMs }: { readonly nowMs: number; readonly toleranceMs: number | undefined },
): VerifyCode | undefined {
  const pastMs = toleranceMs ?? source.pastMs
  if (pastMs === undefined) return undefined
  if (text === undefined || text === '') return 'timestamp_missing'
  const timeMs = readTime(text, source.unit)
  if (timeMs === undefined) return 'timestamp_invalid'
  const futureMs = toleranceMs ?? source.futureMs ?? pastMs
  // Senders that write whole seconds are as old as they say.
  const ageMs = source.unit === 's' ? Math.floor(nowMs / 1000) * 1000 - timeMs : nowMs - timeMs
  return ageMs > pastMs || -ageMs > futureMs ? 'timestamp_out_of_tolerance' : undefined
}

/** The time in a verified body. */
export function bodyTime(path: string, from: Readable): string | undefined {
  return readField({ body: path }, from)
}

const iso = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})?$/

const httpDate =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** Epoch milliseconds of a time in one of the ways that senders write it; undefined for everything else. */
export function readTime(text: string, unit: TimestampSource['unit']): number | undefined {
  if (unit === 's') return /^\d{1,11}$/.test(text) ? Number(text) * 1000 : undefined
  if (unit === 'ms') return /^\d{1,14}$/.test(text) ? Number(text) : undefined
  let time: number
  if (unit === 'iso') {
    const parts = iso.exec(text)
    if (parts === null) return undefined
    const [, day, clock, fraction = '', zone = 'Z'] = parts
    time = Date.parse(`${day}T${clock}.${fraction.slice(0, 3).padEnd(3, '0')}${zone}`)
  } else {
    time = httpDate.test(text) ? Date.parse(text) : Number.NaN
  }
  return Number.isNaN(time) ? undefined : time
}

/** The time as the sender writes it. */
export function writeTime(timeMs: number, unit: TimestampSource['unit']): string {
  if (unit === 's') return String(Math.floor(timeMs / 1000))
  if (unit === 'ms') return String(timeMs)
  return unit === 'iso' ? new Date(timeMs).toISOString() : new Date(timeMs).toUTCString()
}
