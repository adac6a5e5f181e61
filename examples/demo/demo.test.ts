import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const demo = join(import.meta.dirname, 'demo.ts')
const flags = ['--conditions=@webhook-inbox/source', demo]

it('counts right and ends by itself', { timeout: 120_000 }, async () => {
  const { stdout } = await promisify(execFile)(process.execPath, flags)
  const rows = [...stdout.matchAll(/^(express|koa|hono) +(\d.*)$/gm)].map(([, name, numbers]) => ({
    name,
    numbers: (numbers ?? '').split(/ +/).map(Number),
  }))
  expect(rows.map(({ name }) => name)).toEqual(['express', 'koa', 'hono'])
  for (const { numbers } of rows) {
    const [
      received = 0,
      ran,
      copies200 = 0,
      copies202 = 0,
      refused,
      pings,
      cutOff,
      tookOver,
      ...bad
    ] = numbers
    expect({ ran, refused, pings, cutOff, tookOver, bad }).toEqual({
      ran: 325,
      refused: 132,
      pings: 11,
      cutOff: 1,
      tookOver: 1,
      bad: [0, 0],
    })
    expect(received).toBe(325 + copies200 + copies202 + 132 + 11 + 1)
    expect(received).toBeGreaterThan(2 * 329)
  }
  expect(stdout).toContain('Every count is right.')
})

it('keeps the receivers up with --serve, and prints a command that works', {
  timeout: 120_000,
}, async () => {
  const child = spawn(process.execPath, [...flags, '--serve'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
  })
  let printed = ''
  child.stdout.on('data', (chunk) => {
    printed += chunk
  })
  const upTo = async (text: string): Promise<void> => {
    while (!printed.includes(text)) await once(child.stdout, 'data')
  }

  await upTo('done\n')
  const command = printed.slice(printed.indexOf('body='))
  const sent = await promisify(execFile)('sh', ['-c', command])
  expect(sent.stdout).toBe(' 204\n 204\n 204\n')
  for (const framework of ['express', 'koa', 'hono']) await upTo(`${framework} ran push`)
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})
