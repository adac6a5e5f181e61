import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { signRequest } from '@webhook-inbox/testkit'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { postgresTargets } from './services/postgres.ts'
import { startRedis } from './services/redis.ts'

const root = join(import.meta.dirname, '..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const secret = 'a secret of the reader'

// Inside this package, so that imports find what a reader would have installed.
mkdirSync(join(import.meta.dirname, '.tmp'), { recursive: true })
const folder = mkdtempSync(join(import.meta.dirname, '.tmp/readme-'))
afterAll(() => rmSync(folder, { recursive: true }))

const packages = join(root, 'packages')
const blocks = [
  ...blocksOf('readme', readme),
  ...readdirSync(packages).flatMap((name) =>
    blocksOf(`package-${name}`, readFileSync(join(packages, name, 'README.md'), 'utf8')),
  ),
  // This one needs generated files: test/executors/prisma.long.test.ts compiles it.
].filter(({ name }) => name !== 'prisma')
for (const { name, code } of blocks) writeFileSync(join(folder, `${name}.ts`), code)

describe('what the READMEs show', () => {
  it('compiles', async () => {
    expect(blocks.length).toBeGreaterThan(15)
    writeFileSync(
      join(folder, 'tsconfig.json'),
      JSON.stringify({ extends: '../../../tsconfig.json', include: ['*.ts'] }),
    )
    const tsc = join(root, 'node_modules/typescript/bin/tsc')
    const { stdout } = await promisify(execFile)(process.execPath, [tsc, '-p', folder]).catch(
      (error: { readonly stdout: string }) => error,
    )
    expect(stdout).toBe('')
  })

  it.each(['express', 'koa', 'hono', 'node'])('%s: a receiver that works', async (name) => {
    const code = readFileSync(join(folder, `${name}.ts`), 'utf8')
    expect(code.trim().split('\n').length).toBeLessThanOrEqual(name === 'node' ? 18 : 15)
    const cwd = await runs(name)
    expect(existsSync(join(cwd, 'inbox.db'))).toBe(true)
  })

  it('postgres: a receiver that works', async () => {
    const target = postgresTargets().at(-1)
    if (target === undefined) throw new Error('No PostgreSQL is here.')
    const server = await target.start()
    try {
      await runs('postgres', { DATABASE_URL: server.url(await server.createDatabase()) })
    } finally {
      await server.stop()
    }
  })

  it('redis: a receiver that works', async () => {
    // So that setup() has nothing to warn of.
    const server = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } })
    try {
      await runs('redis', { REDIS_URL: server.url })
    } finally {
      await server.stop()
    }
  })

  it('fetch: a receiver that works', async () => {
    vi.stubEnv('WEBHOOK_SECRET', secret)
    const loaded: { readonly default: { fetch(request: Request): Promise<Response> } } =
      await import(pathToFileURL(join(folder, 'fetch.ts')).href)
    vi.unstubAllEnvs()
    await accepts((request) =>
      loaded.default.fetch(new Request('https://hooks.example.test/webhooks/github', request)),
    )
  })

  it('links to files that are there', () => {
    const links = [...readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, link = '']) => link)
    expect(links.length).toBeGreaterThan(2)
    expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([])
  })
})

function blocksOf(where: string, text: string): { readonly name: string; readonly code: string }[] {
  return [...text.matchAll(/^```ts ?(\w*)\n([\s\S]*?)^```$/gm)].map(
    ([, name, code = ''], index) => ({ name: name || `${where}-${index + 1}`, code }),
  )
}

/** Runs a receiver that a README shows, in a folder of its own, and sends it requests. Answers the folder. */
async function runs(name: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const code = readFileSync(join(folder, `${name}.ts`), 'utf8')
  const port = await freePort()
  const file = join(folder, `${name}-running.ts`)
  writeFileSync(file, code.replace('3000', String(port)))
  const cwd = mkdtempSync(join(folder, `${name}-`))
  const child = spawn(process.execPath, ['--conditions=@webhook-inbox/source', file], {
    cwd,
    env: { ...process.env, ...env, WEBHOOK_SECRET: secret },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  try {
    await listening(port, child.exitCode === null ? once(child, 'exit') : Promise.resolve())
    const url = `http://127.0.0.1:${port}/webhooks/github`
    await accepts((request) => fetch(url, request))
    return cwd
  } finally {
    const exited = once(child, 'exit')
    if (child.kill('SIGKILL')) await exited
  }
}

/** A forged request is refused, a genuine one runs, its copy is answered. */
async function accepts(send: (request: RequestInit) => Promise<Response>): Promise<void> {
  const request = await signRequest('github', { secret, event: 'push', payload: { ref: 'main' } })
  expect((await send({ ...request, body: '{}' })).status).toBe(401)
  const first = await send(request)
  expect([200, 204]).toContain(first.status)
  const copy = await send(request)
  expect(copy.status).toBe(200)
  expect(await copy.json()).toMatchObject({ status: 'completed' })
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (typeof address !== 'object' || address === null) throw new Error('no port')
  return address.port
}

/** Resolves when something listens there; rejects when the process has ended. */
async function listening(port: number, ended: Promise<unknown>): Promise<void> {
  let over = false
  ended.then(() => {
    over = true
  })
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const connected = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'error').then(() => false),
    ]).catch(() => false)
    socket.destroy()
    if (connected) return
    if (over) throw new Error('The process ended before it listened.')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
