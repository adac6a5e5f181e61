// Compiles every package into its dist, each after the ones that it is built on. No bundler: a file stays a file.
import { rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { run } from './run.ts'
import { publicPackages, root } from './workspace.ts'

const tsc = join(root, 'node_modules/typescript/bin/tsc')

for (const { folder } of publicPackages()) {
  rmSync(join(folder, 'dist'), { recursive: true, force: true })
  const { code } = await run(
    process.execPath,
    [tsc, '-p', join(relative(root, folder), 'tsconfig.build.json')],
    { show: true },
  )
  if (code !== 0) process.exit(code)
}
