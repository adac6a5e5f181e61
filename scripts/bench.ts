// `pnpm bench claims`, `pnpm bench queue`: runs one benchmark of test/bench. They print ratios; none of them fails for being slow.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './run.ts'
import { root } from './workspace.ts'

const [name = ''] = process.argv.slice(2)
const file = join(root, 'test/bench', `${name}.ts`)
if (!['claims', 'queue'].includes(name) || !existsSync(file)) {
  console.error('Say which: pnpm bench claims, or pnpm bench queue')
  process.exitCode = 1
} else {
  const args = ['--conditions=@webhook-inbox/source', file]
  process.exitCode = (await run(process.execPath, args, { show: true })).code
}
