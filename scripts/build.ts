// Compiles every package into its dist, each after the ones that it is built on. No bundler: a file stays a file.
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './run.ts'
import { publicPackages, root } from './workspace.ts'

const tsc = join(root, 'node_modules/typescript/bin/tsc')
const emittedMark = 'TSFILE: '

for (const { folder } of publicPackages()) {
  const { code, output } = await run(process.execPath, [
    tsc,
    '-p',
    join(folder, 'tsconfig.build.json'),
    '--listEmittedFiles',
  ])
  const lines = output.split('\n')
  const emitted = lines.filter((line) => line.startsWith(emittedMark))
  if (code !== 0) {
    console.error(lines.filter((line) => !emitted.includes(line)).join('\n'))
    process.exit(code)
  }
  removeOthers(join(folder, 'dist'), new Set(emitted.map((line) => line.slice(emittedMark.length))))
}

// Afterwards and not before: somebody may be reading what an earlier build left.
function removeOthers(dist: string, kept: ReadonlySet<string>): void {
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name)
    if (entry.isFile() && !kept.has(file)) rmSync(file)
  }
}
