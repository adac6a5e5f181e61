// The one test command: lint, types, the packages as they are published, then the suite. Ends with one line: "N passed, N failed".
// With arguments only the suite runs, and they go to vitest: `pnpm test packages/koa -t drain`.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Ended, run } from './run.ts'
import { root } from './workspace.ts'

interface Count {
  readonly passed: number
  readonly failed: number
}

const node = process.execPath
const modules = join(root, 'node_modules')
const checks: readonly (readonly [name: string, ...args: string[]])[] = [
  ['lint', join(modules, '@biomejs/biome/bin/biome'), 'check', '.'],
  ['types', join(modules, 'typescript/bin/tsc'), '--noEmit'],
  ['packages', join(root, 'scripts/package-check.ts')],
]

const args = process.argv.slice(2)
const counts: Count[] = []
if (args.length === 0)
  for (const [name, ...command] of checks) counts.push(await check(name, command))
counts.push(await suite(args))

const passed = counts.reduce((sum, count) => sum + count.passed, 0)
const failed = counts.reduce((sum, count) => sum + count.failed, 0)
console.log(`\n${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1

async function check(name: string, command: readonly string[]): Promise<Count> {
  const startedAtMs = performance.now()
  const { code, output }: Ended = await run(node, command)
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1)
  console.log(`${code === 0 ? '✓' : '✗'} ${name} (${seconds} s)`)
  if (code === 0) return { passed: 1, failed: 0 }
  console.log(output)
  return { passed: 0, failed: 1 }
}

async function suite(vitestArgs: readonly string[]): Promise<Count> {
  const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-test-'))
  const file = join(folder, 'results.json')
  const { code } = await run(
    node,
    [
      join(modules, 'vitest/vitest.mjs'),
      'run',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${file}`,
      ...vitestArgs,
    ],
    { show: true },
  )
  const count = readResults(file)
  rmSync(folder, { recursive: true })
  // A file that does not load or an unhandled rejection fails the run without a failed test.
  return code !== 0 && count.failed === 0 ? { ...count, failed: 1 } : count
}

function readResults(file: string): Count {
  let results: unknown
  try {
    results = JSON.parse(readFileSync(file, 'utf8'))
  } catch {
    return { passed: 0, failed: 1 }
  }
  return isResults(results)
    ? { passed: results.numPassedTests, failed: results.numFailedTests }
    : { passed: 0, failed: 1 }
}

function isResults(
  value: unknown,
): value is { readonly numPassedTests: number; readonly numFailedTests: number } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'numPassedTests' in value &&
    typeof value.numPassedTests === 'number' &&
    'numFailedTests' in value &&
    typeof value.numFailedTests === 'number'
  )
}
