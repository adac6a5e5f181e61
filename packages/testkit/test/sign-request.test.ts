import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Delivery, memoryStore, verify, webhook } from '@webhook-inbox/core'
import { signRequest } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'

const secret = "It's a Secret to Everybody"

async function read(request: {
  headers: Record<string, string>
  body: string | Uint8Array
}): Promise<Delivery> {
  const { headers, body } = request
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body
  const result = await verify('github', { headers, body: bytes, secret })
  if (!result.valid) throw new Error(result.code)
  return result.delivery
}

describe('signRequest', () => {
  it("makes GitHub's published signature", async () => {
    const { headers } = await signRequest('github', {
      secret,
      event: 'push',
      body: 'Hello, World!',
    })
    expect(headers['x-hub-signature-256']).toBe(
      'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    )
  })

  it('sends the payload as JSON, with ids', async () => {
    const request = await signRequest('github', {
      secret,
      event: 'issues',
      payload: { action: 'opened', title: 'café ☕' },
      deliveryId: 'd-1',
      endpoint: '42',
    })
    expect(await read(request)).toMatchObject({
      id: 'd-1',
      event: 'issues',
      action: 'opened',
      endpoint: '42',
      payload: { action: 'opened', title: 'café ☕' },
    })
  })

  it('sends the payload as a form', async () => {
    const payload = { text: 'a & b + c = ☕ %25', action: 'created' }
    const request = await signRequest('github', { secret, event: 'push', payload, form: true })
    expect(request.headers['content-type']).toBe('application/x-www-form-urlencoded')
    expect((await read(request)).payload).toEqual(payload)
  })

  it('leaves given bytes as they are', async () => {
    const body = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const request = await signRequest('github', { secret, event: 'push', body })
    expect(request.body).toBe(body)
    expect([...(await read(request)).rawBody]).toEqual([...body])
  })

  it('gives every request another delivery id unless one is named', async () => {
    const ids = await Promise.all(
      Array.from(
        { length: 3 },
        async () => (await read(await signRequest('github', { secret, event: 'push' }))).id,
      ),
    )
    expect(new Set(ids).size).toBe(3)
  })

  it('lets given headers win', async () => {
    const { headers } = await signRequest('github', {
      secret,
      event: 'push',
      headers: { 'X-Hub-Signature-256': 'forged', 'user-agent': 'GitHub-Hookshot/1' },
    })
    expect(headers['x-hub-signature-256']).toBe('forged')
    expect(headers['user-agent']).toBe('GitHub-Hookshot/1')
  })

  it('is what fetch and Request take', async () => {
    const request = await signRequest('github', { secret, event: 'push', payload: { ok: true } })
    const ids: string[] = []
    const handle = webhook({
      provider: 'github',
      secret,
      store: memoryStore(),
      handler: ({ id }) => void ids.push(id),
    })
    expect((await handle(new Request('http://hooks.test/', request))).status).toBe(200)

    let received = ''
    const server = createServer((incoming, response) => {
      incoming.on('data', (chunk) => {
        received += chunk
      })
      incoming.on('end', () => response.end())
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    await fetch(`http://127.0.0.1:${port}/`, request)
    await new Promise((resolve) => server.close(resolve))
    expect(received).toBe('{"ok":true}')
    expect(ids.length).toBe(1)
  })

  it('refuses an unknown provider and a blank secret', async () => {
    // @ts-expect-error the name is not in the catalogue
    await expect(signRequest('githib', { secret, event: 'push' })).rejects.toThrow(
      /"githib". Did you mean "github"/,
    )
    // @ts-expect-error its entry has to be imported
    await expect(signRequest('plaid', { secret })).rejects.toThrow('@webhook-inbox/core/jwt')
    await expect(signRequest('discord', { secret })).rejects.toThrow(/key pair. Pass privateKey/)
    await expect(signRequest('github', { secret: '', event: 'push' })).rejects.toMatchObject({
      code: 'ERR_OPTION',
    })
  })
})
