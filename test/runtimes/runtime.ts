/** Starts each runtime on a free port, and tells which modules it has loaded. */
import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Miniflare } from 'miniflare'
import { rolldown } from 'rolldown'

export interface Server {
  readonly url: string
  stop(): Promise<void>
}

export interface Runtime {
  readonly name: string
  start(): Promise<Server>
  /** Ids of everything that the entry pulls in: absolute paths of files, and names such as `node:crypto`. */
  loadedModules(): Promise<readonly string[]>
}

const here = dirname(fileURLToPath(import.meta.url))
const condition = '@webhook-inbox/source'
const require = createRequire(import.meta.url)
const run = promisify(execFile)

// The programs themselves: a signal to their npm wrappers would leave them running.
const suffix = process.platform === 'win32' ? '.exe' : ''
const deno = join(dirname(require.resolve('deno/package.json')), `deno${suffix}`)
const bun = join(dirname(require.resolve('bun/package.json')), 'bin', 'bun.exe')

export const runtimes: readonly Runtime[] = [
  {
    name: 'workerd',
    async start() {
      const miniflare = new Miniflare({
        modules: true,
        script: (await bundleForWorkerd()).code,
        compatibilityDate: '2026-01-01',
        host: '127.0.0.1',
        port: 0,
      })
      const { origin } = await miniflare.ready
      return { url: origin, stop: () => miniflare.dispose() }
    },
    loadedModules: async () => (await bundleForWorkerd()).modules,
  },
  {
    name: 'Deno',
    start: () =>
      startProcess(deno, [
        'run',
        '--no-prompt',
        '--allow-net=127.0.0.1',
        '--cached-only',
        '--node-modules-dir=manual',
        `--conditions=${condition}`,
        join(here, 'deno.ts'),
      ]),
    async loadedModules() {
      const { stdout } = await run(
        deno,
        ['info', '--json', '--node-modules-dir=manual', join(here, 'deno.ts')],
        { env: { ...process.env, DENO_CONDITIONS: condition } },
      )
      const { modules }: { modules: readonly { specifier: string }[] } = JSON.parse(stdout)
      return modules.map(({ specifier }) =>
        specifier.startsWith('file:') ? fileURLToPath(specifier) : specifier,
      )
    },
  },
  {
    name: 'Bun',
    start: () => startProcess(bun, [`--conditions=${condition}`, join(here, 'bun.ts')]),
    async loadedModules() {
      const folder = await mkdtemp(join(tmpdir(), 'webhook-inbox-bun-'))
      const metafile = join(folder, 'meta.json')
      try {
        await run(bun, [
          'build',
          join(here, 'bun.ts'),
          '--target=bun',
          `--conditions=${condition}`,
          `--metafile=${metafile}`,
          `--outdir=${folder}`,
        ])
        const { inputs }: { inputs: Record<string, { imports: readonly { path: string }[] }> } =
          JSON.parse(await readFile(metafile, 'utf8'))
        const files = Object.keys(inputs).map((file) => join(process.cwd(), file))
        const imports = Object.values(inputs).flatMap((input) => input.imports)
        return [...files, ...imports.map(({ path }) => path)]
      } finally {
        await rm(folder, { recursive: true })
      }
    },
  },
]

/** The runtimes that have node:http, each starting an entry of this folder. */
export const nodeRuntimes: readonly {
  readonly name: string
  start(entry: string): Promise<Server>
}[] = [
  {
    name: 'Node',
    start: (entry) =>
      startProcess(process.execPath, [`--conditions=${condition}`, join(here, entry)]),
  },
  {
    name: 'Deno',
    start: (entry) =>
      startProcess(deno, [
        'run',
        '--no-prompt',
        '--allow-net=127.0.0.1',
        '--allow-env',
        '--allow-read',
        '--allow-sys',
        '--cached-only',
        '--node-modules-dir=manual',
        `--conditions=${condition}`,
        join(here, entry),
      ]),
  },
  {
    name: 'Bun',
    start: (entry) => startProcess(bun, [`--conditions=${condition}`, join(here, entry)]),
  },
]

async function bundleForWorkerd(): Promise<{ code: string; modules: readonly string[] }> {
  const bundle = await rolldown({
    input: join(here, 'workerd.ts'),
    platform: 'neutral',
    resolve: { conditionNames: [condition, 'workerd', 'worker', 'import', 'default'] },
  })
  try {
    const { output } = await bundle.generate({ format: 'esm', codeSplitting: false })
    const [chunk] = output
    return { code: chunk.code, modules: [...chunk.moduleIds, ...chunk.imports] }
  } finally {
    await bundle.close()
  }
}

/** A process that prints `ready <port>` once it listens. */
async function startProcess(program: string, args: readonly string[]): Promise<Server> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const exited = new Promise<void>((resolve) => child.on('close', () => resolve()))
  let said = ''
  child.stderr.on('data', (chunk) => {
    said += chunk
  })
  const port = await new Promise<string>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', () => reject(new Error(`${program} ended before it was ready:\n${said}`)))
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('ready ')) resolve(line.slice('ready '.length))
    })
  })
  return {
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.kill()
      await exited
    },
  }
}
