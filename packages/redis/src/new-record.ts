import type { ClaimEntry } from '@webhook-inbox/core'
import { packAbout, packText } from './encoding.ts'

/** What a claim brings to make a record of. */
export interface NewRecord {
  readonly entry: ClaimEntry
  /** The readable parts of the key, packed. */
  readonly names: string
}

// Bytes of the numbers and headers of one record, at most.
const overhead = 64

/**
 * The records that new inline claims make, each behind its length in four bytes: in MessagePack what `format` in
 * record-lua.ts packs, without what only a script knows, and then the fingerprint.
 */
export function packNew(records: readonly NewRecord[]): Buffer {
  const parts = records.map(({ entry, names }) => ({
    entry,
    names,
    about: packAbout(entry),
    print: entry.fingerprint === undefined ? undefined : packText(entry.fingerprint),
  }))
  let size = 0
  for (const { entry, names, about, print } of parts)
    size += overhead + (print?.length ?? 0) + 3 * (entry.token.length + names.length + about.length)
  const bytes = Buffer.allocUnsafe(size)
  let at = 0

  function number(value: number): void {
    if (value < 2 ** 32) {
      bytes[at] = 0xce
      at = bytes.writeUInt32BE(value, at + 1)
    } else {
      bytes[at] = 0xcf
      at = bytes.writeUInt32BE(Math.floor(value / 2 ** 32), at + 1)
      at = bytes.writeUInt32BE(value % 2 ** 32, at)
    }
  }

  function text(value: string): void {
    const length = bytes.write(value, at + 5)
    bytes[at] = 0xdb
    bytes.writeUInt32BE(length, at + 1)
    at += length + 5
  }

  function no(): void {
    bytes[at] = 0xc2
    at += 1
  }

  for (const { entry, names, about, print } of parts) {
    const start = at
    at += 4
    number(1)
    number(0)
    number(entry.unfinishedRetentionMs)
    text(about)
    number(entry.leaseMs)
    number(entry.unfinishedRetentionMs)
    no()
    text(names)
    no()
    text(entry.token)
    // No log, no line, no place in one.
    no()
    no()
    no()
    if (print !== undefined) at += print.copy(bytes, at)
    bytes.writeUInt32BE(at - start - 4, start)
  }
  return bytes.subarray(0, at)
}
