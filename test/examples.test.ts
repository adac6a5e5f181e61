import { type ChildProcess, spawn } from 'node:child_process'
import { createHmac, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
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

function signatureOf(text: string): string {
  return `sha256=${createHmac('sha256', secret).update(text).digest('hex')}`
}

function signedBody(text: string, id: string, event = 'push'): RequestInit {
  return {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-github-event': event,
      'x-github-delivery': id,
      'x-hub-signature-256': signatureOf(text),
    },
    body: text,
  }
}

function signed(id: string, overrides: { readonly body?: string } = {}): RequestInit {
  return { ...signedBody(body, id), body: overrides.body ?? body }
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

describe('examples/worker', () => {
  it('answers 202, runs the delivery once, and what waited over a restart', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-example-'))
    cleanups.push(() => rmSync(folder, { recursive: true }))
    const id = randomUUID()
    const push = '{"ref":"refs/heads/main"}'

    const first = await start('worker', folder)
    const answer = await fetch(first.url, signedBody(push, id))
    expect([answer.status, await answer.json()]).toEqual([
      202,
      { status: 'pending', deliveryId: id },
    ])
    await expect.poll(() => first.printed).toContain(`push to refs/heads/main ${id}`)
    await expect.poll(async () => (await fetch(first.url, signedBody(push, id))).status).toBe(200)
    expect((await fetch(first.url, signedBody(push, randomUUID(), 'fork'))).status).toBe(202)
    expect(await stop(first.process)).toBe(0)
    expect(first.printed.filter((line) => line.endsWith(id))).toHaveLength(1)

    const second = await start('worker', folder)
    expect((await fetch(second.url, signedBody(push, id))).status).toBe(200)
    expect(await stop(second.process)).toBe(0)
    expect(second.printed.filter((line) => line.endsWith(id))).toEqual([])
  })
})

describe('examples/orders', () => {
  it('charges once, writes the order with the completion, and skips what is older', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'webhook-inbox-example-'))
    cleanups.push(() => rmSync(folder, { recursive: true }))
    const payments = await startPayments()
    const { url } = await start('orders', folder, { PAYMENTS_URL: payments.url })
    const shop = new URL('/webhooks/shop', url)
    const send = (id: string, order: object) => {
      const text = JSON.stringify(order)
      return fetch(shop, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-shop-event': 'order',
          'x-shop-delivery': id,
          'x-shop-signature': signatureOf(text),
        },
        body: text,
      })
    }
    const orders = async () => (await fetch(new URL('/orders', url))).json()

    const paid = { id: '1042', status: 'paid', updatedAt: '2026-12-01T10:00:00Z' }
    expect((await send('first', paid)).status).toBe(202)
    const copy = await send('first', paid)
    expect([200, 202]).toContain(copy.status)
    await expect.poll(orders).toEqual([{ id: '1042', status: 'paid', charge: 'charge-1' }])
    // The API had made the charge, and its answer was lost: the second attempt got the first charge.
    expect(payments.requests()).toBe(2)
    expect(payments.charges()).toBe(1)
    await expect.poll(async () => (await send('first', paid)).status).toBe(200)

    const older = { id: '1042', status: 'created', updatedAt: '2026-12-01T09:00:00Z' }
    expect((await send('second', older)).status).toBe(202)
    await expect.poll(async () => (await send('second', older)).status).toBe(200)
    expect(await orders()).toEqual([{ id: '1042', status: 'paid', charge: 'charge-1' }])
  })
})

/** A payment API that makes one charge for each idempotency key, and loses the first of its answers. */
async function startPayments() {
  const charges = new Map<string, string>()
  let requests = 0
  const server = createHttpServer((req, res) => {
    const key = String(req.headers['idempotency-key'])
    requests += 1
    const charge = charges.get(key) ?? `charge-${charges.size + 1}`
    charges.set(key, charge)
    if (requests === 1) res.destroy()
    else res.end(charge)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  cleanups.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/charges`,
    requests: () => requests,
    charges: () => charges.size,
  }
}

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
async function start(
  name: string,
  folder: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Started> {
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
        ...environment,
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
