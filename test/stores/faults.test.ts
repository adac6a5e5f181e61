// What a sender sees of a store in trouble: a whole receiver on a real server, behind a proxy that breaks the network.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInbox, type Inbox, type Store } from '@webhook-inbox/core'
import { githubWebhook } from '@webhook-inbox/node'
import { postgresStore } from '@webhook-inbox/postgres'
import { redisStore } from '@webhook-inbox/redis'
import { signRequest } from '@webhook-inbox/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { onConnection, openPool, startPostgres } from '../services/postgres.ts'
import { startProxy, type TcpProxy } from '../services/proxy.ts'
import { startRedis } from '../services/redis.ts'

const secret = 'a secret of this test'
const storeTimeoutMs = 700
// Longer than any test: what works again works because the claim was given back, not because its lease ended.
const leaseMs = 600_000

/** A server of our own and a store that reaches it through the proxy. */
interface Target {
  readonly proxy: TcpProxy
  readonly store: Store
  /** Lets the server read only: as a standby does, or one whose memory is full. */
  refuseWrites(refused: boolean): Promise<void>
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

const targets: Readonly<Record<string, () => Promise<Target>>> = {
  async postgres() {
    const server = await startPostgres()
    const proxy = await startProxy(server)
    const database = await server.createDatabase()
    const proxied = new URL(server.url(database))
    proxied.port = String(proxy.port)
    const pool = openPool(proxied.href, 4)
    const store = postgresStore({ pool, timeoutMs: storeTimeoutMs, onWarning: () => {} })
    await store.setup()
    return {
      proxy,
      store,
      async refuseWrites(refused) {
        await onConnection(server.url(), (client) =>
          client.query(
            `ALTER DATABASE ${database} SET default_transaction_read_only = ${refused ? 'on' : 'off'}`,
          ),
        )
        // The setting is that of connections made from now on.
        proxy.cut()
      },
      kill: server.kill,
      start: server.start,
      async stop() {
        await pool.end()
        await proxy.close()
        await server.stop()
      },
    }
  },
  async redis() {
    const server = await startRedis({ settings: { appendonly: 'yes', appendfsync: 'always' } })
    const proxy = await startProxy(server)
    const client = new Redis(proxy.port, proxy.host, { retryStrategy: () => 50 })
    client.on('error', () => {})
    const store = redisStore({ client, onWarning: () => {} })
    await store.setup()
    return {
      proxy,
      store,
      async refuseWrites(refused) {
        await client.config('SET', 'maxmemory', refused ? '1' : '0')
      },
      kill: server.kill,
      start: server.start,
      async stop() {
        client.disconnect()
        await proxy.close()
        await server.stop()
      },
    }
  },
}

const rejections: unknown[] = []
const keep = (reason: unknown) => void rejections.push(reason)
beforeAll(() => void process.on('unhandledRejection', keep))
afterAll(() => void process.off('unhandledRejection', keep))

for (const [name, open] of Object.entries(targets)) {
  describe(`a receiver on ${name}`, () => {
    let target: Target
    let inbox: Inbox
    let server: Server
    let url: string
    let runs: string[]
    /** Called by the handler before it answers. */
    let during: () => void

    beforeAll(async () => {
      target = await open()
    })
    afterAll(() => target?.stop())

    beforeEach(async () => {
      runs = []
      during = () => {}
      inbox = createInbox({ store: target.store, leaseMs, storeTimeoutMs, onError: () => {} })
      const handler = githubWebhook({
        secret,
        inbox,
        handler(webhook) {
          runs.push(webhook.id)
          during()
        },
      })
      server = createServer(handler)
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const { port } = server.address() as AddressInfo
      url = `http://127.0.0.1:${port}/`
    })

    afterEach(async () => {
      expect(await inbox.drain({ timeoutMs: 10_000 })).toEqual({ drained: true, running: 0 })
      server.closeAllConnections()
      server.close()
      expect(rejections.splice(0)).toEqual([])
    })

    let deliveries = 0
    const nextId = (): string => {
      deliveries += 1
      return `00000000-0000-4000-8000-${String(deliveries).padStart(12, '0')}`
    }

    async function send(deliveryId: string): Promise<Response> {
      const { method, headers, body } = await signRequest('github', {
        secret,
        event: 'push',
        deliveryId,
      })
      return fetch(url, { method, headers, body })
    }

    const statusOf = ({ status, headers }: Response) => [
      status,
      headers.get('webhook-inbox-status'),
    ]

    /** Sends until the answer is no 503 any more; at most ten seconds. */
    async function sendUntilAnswered(deliveryId: string): Promise<Response> {
      const until = performance.now() + 10_000
      for (;;) {
        const answer = await send(deliveryId)
        if (answer.status !== 503 || performance.now() > until) return answer
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    }

    async function expectUnavailable(deliveryId: string): Promise<void> {
      const startedAtMs = performance.now()
      const answer = await send(deliveryId)
      // The deadline, and what a busy machine adds.
      expect(performance.now() - startedAtMs).toBeLessThan(storeTimeoutMs + 2000)
      expect(answer.status).toBe(503)
      expect(answer.headers.get('retry-after')).toBe('1')
      expect(await answer.json()).toMatchObject({ code: 'store_unavailable' })
      expect(runs).toEqual([])
    }

    it('answers 503 while the server is dead, runs nothing, and works again by itself', async () => {
      const [done, id] = [nextId(), nextId()]
      expect((await send(done)).status).toBe(200)
      runs = []
      await target.kill()
      await expectUnavailable(id)
      await Promise.all(Array.from({ length: 20 }, () => expectUnavailable(nextId())))
      await target.start()
      expect((await sendUntilAnswered(id)).status).toBe(200)
      expect(statusOf(await sendUntilAnswered(done))).toEqual([200, 'completed'])
      expect(runs).toEqual([id])
    })

    it('answers 503 while nothing comes through, and works again by itself', async () => {
      const id = nextId()
      target.proxy.drop('replies')
      await expectUnavailable(id)
      target.proxy.accept()
      target.proxy.cut()
      // The server may have heard the claim all the same: it is given back.
      expect((await inbox.drain({ timeoutMs: 10_000 })).drained).toBe(true)
      expect((await sendUntilAnswered(id)).status).toBe(200)
      expect(runs).toEqual([id])
    })

    it('answers 503 while answers come too late, and works again by itself', async () => {
      const id = nextId()
      target.proxy.delay(storeTimeoutMs)
      await expectUnavailable(id)
      target.proxy.delay(0)
      expect((await inbox.drain({ timeoutMs: 10_000 })).drained).toBe(true)
      expect((await sendUntilAnswered(id)).status).toBe(200)
      expect(runs).toEqual([id])
    })

    it('answers 503 while the server takes no writes, but copies of what is completed 200', async () => {
      const [done, id] = [nextId(), nextId()]
      expect((await send(done)).status).toBe(200)
      runs = []
      await target.refuseWrites(true)
      try {
        expect(statusOf(await sendUntilAnswered(done))).toEqual([200, 'completed'])
        await expectUnavailable(id)
      } finally {
        await target.refuseWrites(false)
      }
      expect((await sendUntilAnswered(id)).status).toBe(200)
      expect(runs).toEqual([id])
    })

    it('gives back a claim whose reply was lost: it runs when it is sent again', async () => {
      const id = nextId()
      // A connection is there, so that the lost reply is that of the claim.
      expect((await send(nextId())).status).toBe(200)
      runs = []
      const swallowed = target.proxy.swallowReply()
      const first = await send(id)
      await swallowed
      // A client that asks again by itself finds that the claim is its own.
      if (first.status !== 200) {
        expect(first.status).toBe(503)
        expect((await inbox.drain({ timeoutMs: 10_000 })).drained).toBe(true)
        expect((await sendUntilAnswered(id)).status).toBe(200)
      }
      expect(runs).toEqual([id])
    })

    it("lets the handler's own answer out when the reply to the completion is lost", async () => {
      const id = nextId()
      let swallowed: Promise<void> | undefined
      during = () => {
        swallowed = target.proxy.swallowReply()
      }
      expect((await send(id)).status).toBe(200)
      expect(swallowed).toBeDefined()
      await swallowed
      during = () => {}
      expect((await inbox.drain({ timeoutMs: 10_000 })).drained).toBe(true)
      const copy = await sendUntilAnswered(id)
      expect(statusOf(copy)).toEqual([200, 'completed'])
      expect(runs).toEqual([id])
    })

    it('runs each of many deliveries once, although connections break meanwhile', async () => {
      const ids = Array.from({ length: 60 }, nextId)
      let cuts = 0
      const breaking = setInterval(() => {
        target.proxy.cut()
        cuts += 1
        if (cuts === 15) clearInterval(breaking)
      }, 60)
      await Promise.all(ids.flatMap((id) => [sendUntilAnswered(id), sendUntilAnswered(id)]))
      clearInterval(breaking)
      expect((await inbox.drain({ timeoutMs: 10_000 })).drained).toBe(true)
      // A claim that was given back had its copies answered 202; the sender's next attempt runs it.
      const answers = await Promise.all(ids.map(sendUntilAnswered))
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
      expect(runs.toSorted()).toEqual(ids.toSorted())
    })
  })
}
