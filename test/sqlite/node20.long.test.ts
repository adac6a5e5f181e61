import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { storeGuaranteeIds } from '@webhook-inbox/testkit'
import { rolldown } from 'rolldown'
import { afterAll, beforeAll, expect, it } from 'vitest'

const run = promisify(execFile)
const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-node20-'))
// The host's programs: the workspace's own Node comes first in a script's PATH.
const hostPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((entry) => !entry.includes('node_modules'))
const node = hostPath.map((entry) => join(entry, 'node')).find((file) => existsSync(file)) ?? 'node'
const env = { ...process.env, PATH: hostPath.join(delimiter), NODE_OPTIONS: '' }
const bundle = join(folder, 'guarantees.mjs')

beforeAll(async () => {
  const { stdout } = await run(node, ['--version'], { env })
  if (!stdout.startsWith('v20.'))
    throw new Error(`This test needs Node 20 as the host's; ${node} is ${stdout}`)
  const input = fileURLToPath(new URL('./guarantees.ts', import.meta.url))
  const build = await rolldown({
    input,
    platform: 'node',
    resolve: { conditionNames: ['@webhook-inbox/source', 'node', 'import', 'default'] },
  })
  await build.write({ file: bundle, format: 'esm' })
  await build.close()
  writeFileSync(join(folder, 'package.json'), '{ "private": true }')
  // Version 13 needs Node 22. This one compiles for a minute or two where no built one is to be had.
  await run('npm', ['install', 'better-sqlite3@12'], { cwd: folder, env })
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

it('keeps the store guarantees on Node 20 with better-sqlite3 12', async () => {
  const { stdout } = await run(node, [bundle, 'better-sqlite3', folder], { env })
  const expected = storeGuaranteeIds({ features: ['second', 'transactions'] }).length + 2
  expect(stdout).toBe(`passed ${expected}, failed 0\n`)
})

it('says on Node 20 how to come by a SQLite', async () => {
  const { stdout } = await run(node, [bundle, 'path'], { env })
  expect(stdout).toContain('sqliteStore: this runtime has no built-in SQLite')
  expect(stdout).toContain('passed 0,')
})
