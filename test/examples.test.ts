import { type ChildProcess, spawn } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Miniflare } from 'miniflare'
import { rolldown } from 'rolldown'
import { afterEach, describe, expect, it } from 'vitest'

const examples = join(import.meta.dirname, '../examples')
const secret = 'a secret of the reader'
const body = '{"zen":"Keep it logically awesome."}'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function signed(id: string, overrides: { readonly body?: string } = {}): RequestInit {
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-github-delivery': id,
      'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
    },
    body: overrides.body ?? body,
  }
}

describe.each(['express', 'koa', 'hono-node'])('examples/%s', (name) => {
  it('runs a delivery once, over a restart too, and refuses a forged one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-example-'))
    cleanups.push(() => rmSync(folder, { recursive: true }))
    const id = randomUUID()

    const first = await start(name, folder)
    expect((await fetch(first.url, signed(id, { body: `${body} ` }))).status).toBe(401)
    expect((await fetch(first.url, signed(id))).status).toBe(204)
    const copy = await fetch(first.url, signed(id))
    expect(copy.status).toBe(200)
    expect(await copy.json()).toEqual({ status: 'completed', deliveryId: id })
    expect(await stop(first.process)).toBe(0)
    expect(first.printed.filter((line) => line === `push ${id}`)).toHaveLength(1)

    const second = await start(name, folder)
    expect((await fetch(second.url, signed(id))).status).toBe(200)
    expect((await fetch(second.url, signed(randomUUID()))).status).toBe(204)
    expect(await stop(second.process)).toBe(0)
    expect(second.printed).not.toContain(`push ${id}`)
  })
})

describe('examples/hono-worker', () => {
  it('runs a delivery once and refuses a forged one on workerd', async () => {
    const build = await rolldown({
      input: join(examples, 'hono-worker/app.ts'),
      external: [/^cloudflare:/],
      resolve: { conditionNames: ['@webhook-inbox/source', 'workerd', 'import'] },
      logLevel: 'silent',
    })
    const { output } = await build.generate({ format: 'es' })
    await build.close()
    const wrangler: unknown = JSON.parse(
      readFileSync(join(examples, 'hono-worker/wrangler.json'), 'utf8'),
    )
    const worker = new Miniflare({
      modules: true,
      script: output[0].code,
      bindings: { WEBHOOK_SECRET: secret },
      compatibilityDate: compatibilityDateOf(wrangler),
    })
    cleanups.push(() => worker.dispose())
    const url = new URL('/webhooks/github', await worker.ready)
    const id = randomUUID()
    expect((await fetch(url, signed(id, { body: `${body} ` }))).status).toBe(401)
    expect((await fetch(url, signed(id))).status).toBe(204)
    const copy = await fetch(url, signed(id))
    expect(copy.status).toBe(200)
    expect(await copy.json()).toEqual({ status: 'completed', deliveryId: id })
  })
})

interface Started {
  readonly url: string
  readonly process: ChildProcess
  /** Lines of its standard output. */
  readonly printed: readonly string[]
}

/** Starts an example with the command of its package.json, and waits until it says that it listens. */
async function start(name: string, folder: string): Promise<Started> {
  const port = await freePort()
  const child = spawn(
    process.execPath,
    ['--conditions=@webhook-inbox/source', join(examples, name, 'app.ts')],
    {
      env: {
        ...process.env,
        WEBHOOK_SECRET: secret,
        DATABASE: join(folder, 'inbox.db'),
        PORT: String(port),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  cleanups.push(() => stop(child))
  const printed: string[] = []
  const lines = createInterface({ input: child.stdout })
  lines.on('line', (line) => printed.push(line))
  await Promise.race([once(lines, 'line'), once(lines, 'close')])
  expect(printed).toEqual([`Listening on port ${port}`])
  return { url: `http://127.0.0.1:${port}/webhooks/github`, process: child, printed }
}

/** @returns the exit code after SIGTERM */
async function stop(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exited = once(child, 'exit')
    child.kill('SIGTERM')
    await exited
  }
  return child.exitCode
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

function compatibilityDateOf(config: unknown): string {
  if (typeof config === 'object' && config !== null && 'compatibility_date' in config)
    return String(config.compatibility_date)
  throw new Error('wrangler.json has no compatibility_date')
}
