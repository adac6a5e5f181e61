// Checks what is published: packs every package, lints the tarballs, installs them in an empty folder with npm,
// runs a small program on the machine's own Node and on the workspace's, and compiles a consumer's file.
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { startOrUseRedis } from '../test/services/redis.ts'
import { hostEnvironment, type RunOptions, run } from './run.ts'
import { root } from './workspace.ts'

const node = process.execPath
const modules = join(root, 'node_modules')
const host = hostEnvironment()
const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-packages-'))
const consumer = join(folder, 'consumer')
let failures = 0

/** Runs one check; shows its output only when it fails. */
async function check(
  name: string,
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<boolean> {
  const { code, output } = await run(command, args, options)
  console.log(`${code === 0 ? '✓' : '✗'} ${name}`)
  if (code === 0) return true
  console.log(output)
  failures += 1
  return false
}

async function lintTarballs(tarballs: readonly string[]): Promise<void> {
  for (const tarball of tarballs) {
    const name = basename(tarball)
    await check(`publint ${name}`, node, [
      join(modules, 'publint/src/cli.js'),
      'run',
      tarball,
      '--strict',
    ])
    await check(`types of ${name}`, node, [
      join(modules, '@arethetypeswrong/cli/dist/index.js'),
      tarball,
      '--profile',
      'esm-only',
    ])
  }
}

async function installAndRun(tarballs: readonly string[]): Promise<void> {
  const source = join(root, 'test/package-check')
  mkdirSync(consumer)
  for (const file of readdirSync(source)) copyFileSync(join(source, file), join(consumer, file))
  writeFileSync(
    join(consumer, 'package.json'),
    JSON.stringify({
      private: true,
      type: 'module',
      dependencies: {
        ...Object.fromEntries(tarballs.map((tarball) => [packageName(tarball), `file:${tarball}`])),
        '@electric-sql/pglite': '^0.5.17',
        '@types/express': '^5.0.6',
        '@types/koa': '^3.0.3',
        // The oldest Node that is supported has the oldest types.
        '@types/node': '^20.19.0',
        '@types/pg': '^8.20.0',
        express: '^5.3.0',
        hono: '^4.13.19',
        ioredis: '^6.0.0',
        jose: '^6.2.18',
        koa: '^3.3.0',
        pg: '^8.23.0',
        typescript: '~5.9.0',
      },
    }),
  )
  const outside = { cwd: consumer, env: host }
  const installed = await check(
    'npm install in an empty folder',
    'npm',
    ['install', '--no-audit', '--no-fund', '--no-package-lock', '--loglevel=error'],
    outside,
  )
  if (!installed) return
  const { output } = await run('node', ['--version'], outside)
  const redis = await startOrUseRedis()
  try {
    const withRedis = { ...outside, env: { ...host, REDIS_URL: redis.url } }
    await check(`runs on this machine's Node ${output.trim()}`, 'node', ['run.js'], withRedis)
    await check(`runs on Node ${process.version}`, node, ['run.js'], withRedis)
  } finally {
    await redis.stop()
  }
  for (const [version, tsc] of [
    ['5.9', join(consumer, 'node_modules/typescript/bin/tsc')],
    ['7', join(modules, 'typescript/bin/tsc')],
  ] as const) {
    for (const [resolution, module] of [
      ['nodenext', 'nodenext'],
      ['bundler', 'esnext'],
    ] as const) {
      await check(
        `types for TypeScript ${version}, ${resolution}`,
        node,
        [
          tsc,
          '--noEmit',
          '--strict',
          '--exactOptionalPropertyTypes',
          '--skipLibCheck',
          '--target',
          'es2023',
          '--types',
          'node',
          '--module',
          module,
          '--moduleResolution',
          resolution,
          'types.ts',
        ],
        outside,
      )
    }
  }
}

function packageName(tarball: string): string {
  return basename(tarball).replace(/^webhook-inbox-(.*)-\d+\.\d+\.\d+.*\.tgz$/, '@webhook-inbox/$1')
}

try {
  const tarballFolder = join(folder, 'tarballs')
  const ready =
    (await check('build', node, [join(root, 'scripts/build.ts')])) &&
    (await check('pack', 'npx', [
      '-y',
      'pnpm@12',
      '--recursive',
      '--filter=./packages/*',
      'pack',
      `--pack-destination=${tarballFolder}`,
    ]))
  if (ready) {
    const tarballs = readdirSync(tarballFolder).map((name) => join(tarballFolder, name))
    await Promise.all([lintTarballs(tarballs), installAndRun(tarballs)])
  }
} finally {
  rmSync(folder, { recursive: true })
}
process.exitCode = failures === 0 ? 0 : 1
