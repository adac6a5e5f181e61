import type { ClaimEntry } from '@webhook-inbox/core'
import { packAbout, packText } from './encoding.ts'

/** How many fields an unfinished record has behind its head (`format` in record-lua.ts). */
export const unfinishedFields = 14

/** Stands between two fields, and in none of them: JSON has no such character. */
const end = '\x1f'

/** The record that a new inline claim makes, without the head that only a script knows. */
export function packNew(entry: ClaimEntry, names: string): string {
  const { token, fingerprint, leaseMs, unfinishedRetentionMs: keepMs } = entry
  const print = fingerprint === undefined ? '' : packText(fingerprint)
  // Its first attempt, just created; nothing has happened to it, and it waits in no line.
  return `1${end}0${end}${keepMs}${end}${leaseMs}${end}${keepMs}${end.repeat(6)}${packAbout(entry)}${end}${names}${end}${token}${end}${print}`
}
