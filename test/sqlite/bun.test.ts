import { execFile } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { storeGuaranteeIds } from '@webhook-inbox/testkit'
import { expect, it } from 'vitest'

// The program itself, not its npm wrapper.
const bun = join(
  dirname(createRequire(import.meta.url).resolve('bun/package.json')),
  'bin',
  'bun.exe',
)
const script = fileURLToPath(new URL('./guarantees.ts', import.meta.url))

const path = storeGuaranteeIds({ features: ['second'] }).length
const handedIn = storeGuaranteeIds({ features: ['second', 'transactions'] }).length + 2

it.each([
  ['path', path],
  ['bun:sqlite', handedIn],
  ['node:sqlite', handedIn],
] as const)(
  'the SQLite store keeps its guarantees on Bun (%s)',
  async (kind, passed) => {
    const condition = '--conditions=@webhook-inbox/source'
    const { stdout } = await promisify(execFile)(bun, [condition, script, kind])
    expect(stdout).toBe(`passed ${passed}, failed 0\n`)
  },
  120_000,
)
