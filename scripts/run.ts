import { spawn } from 'node:child_process'
import { delimiter } from 'node:path'
import { root } from './workspace.ts'

/** How a command ended. */
export interface Ended {
  readonly code: number
  /** What it wrote to stdout and stderr, in the order of arrival. */
  readonly output: string
}

export interface RunOptions {
  /** @default the workspace */
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
  /** Shows the output while it comes; it is then not collected. @default false */
  readonly show?: boolean
}

/** Runs a command without a shell and without input. */
export function run(
  command: string,
  args: readonly string[],
  { cwd = root, env = process.env, show = false }: RunOptions = {},
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: ['ignore', show ? 'inherit' : 'pipe', show ? 'inherit' : 'pipe'],
    })
    const chunks: Buffer[] = []
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => chunks.push(chunk))
    child.on('error', reject)
    child.on('close', (code) =>
      resolve({ code: code ?? 1, output: Buffer.concat(chunks).toString() }),
    )
  })
}

/**
 * The environment outside the workspace: `node` and `npm` are the machine's own, and nothing of the package
 * manager that started us leaks in.
 */
export function hostEnvironment(): NodeJS.ProcessEnv {
  const path = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => !/node_modules[\\/]/.test(folder))
    .join(delimiter)
  const kept = Object.entries(process.env).filter(([name]) => !/^(npm_|pnpm_|node_)/i.test(name))
  return { ...Object.fromEntries(kept), PATH: path }
}
