// Runs in an empty folder on the installed packages: every adapter accepts GitHub's published example, answers
// its copy, and refuses a forged request.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { PGlite } from '@electric-sql/pglite'
import { memoryStore, githubWebhook as onFetch, verify } from '@webhook-inbox/core'
import { netlify } from '@webhook-inbox/core/jwt'
import { shopify } from '@webhook-inbox/core/providers'
import { githubWebhook as onExpress } from '@webhook-inbox/express'
import { githubWebhook as onHono } from '@webhook-inbox/hono'
import { githubWebhook as onKoa } from '@webhook-inbox/koa'
import { githubWebhook as onNode } from '@webhook-inbox/node'
import { postgresStore } from '@webhook-inbox/postgres'
import { redisStore } from '@webhook-inbox/redis'
import { sqliteStore } from '@webhook-inbox/sqlite'
import * as testkit from '@webhook-inbox/testkit'
import express from 'express'
import { Hono } from 'hono'
import { Redis } from 'ioredis'
import Koa from 'koa'

const secret = "It's a Secret to Everybody"
const path = '/webhooks/github'
const example = {
  method: 'POST',
  headers: {
    'content-type': 'text/plain',
    'x-github-event': 'push',
    'x-github-delivery': '0b989ba4-242f-11e5-81e1-c7b6966d2516',
    'x-hub-signature-256':
      'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
  },
  body: 'Hello, World!',
}
const forged = { ...example, body: 'Hello, World?' }

/** Each makes `(request) => Response` of one framework, with `run` behind the middleware. */
const adapters = {
  async express(store, run) {
    const app = express()
    app.post(path, onExpress({ secret, store }), (_req, res) => {
      run()
      res.sendStatus(200)
    })
    return serve(createServer(app))
  },
  async koa(store, run) {
    const app = new Koa()
    app.use(onKoa({ secret, store, path }))
    app.use((ctx) => {
      run()
      ctx.status = 200
    })
    return serve(createServer(app.callback()))
  },
  async hono(store, run) {
    const app = new Hono()
    app.post(path, onHono({ secret, store }), (c) => {
      run()
      return c.body(null, 200)
    })
    return { send: async (request) => app.request(path, request), stop: () => {} }
  },
  async node(store, run) {
    return serve(createServer(onNode({ secret, store, path, handler: run })))
  },
  async fetch(store, run) {
    const handle = onFetch({ secret, store, path, handler: run })
    return {
      send: (request) => handle(new Request(`https://hooks.example.test${path}`, request)),
      stop: () => {},
    }
  },
}

async function serve(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    send: (request) => fetch(`http://127.0.0.1:${server.address().port}${path}`, request),
    stop: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** A SQLite store where Node brings SQLite; elsewhere its error is checked and the memory store is used. */
function storeFor(name) {
  const file = fileURLToPath(new URL(`${name}-${process.version}.db`, import.meta.url))
  if (process.getBuiltinModule('node:sqlite') !== undefined) return sqliteStore({ path: file })
  assert.throws(
    () => sqliteStore({ path: file }),
    (error) => /node:sqlite/.test(error.message) && /better-sqlite3/.test(error.message),
  )
  return memoryStore()
}

async function tryOut(name, start, store) {
  let runs = 0
  const { send, stop } = await start(store, () => {
    runs += 1
  })
  const refused = await send(forged)
  assert.equal(refused.status, 401, `${name}: forged`)
  assert.equal((await refused.json()).code, 'signature_mismatch')
  assert.equal(runs, 0, `${name}: a forged request ran`)
  for (const expected of [1, 1]) {
    const answer = await send(example)
    assert.equal(answer.status, 200, `${name}: ${await answer.text()}`)
    assert.equal(runs, expected, name)
  }
  stop()
  await store.close()
}

for (const [name, start] of Object.entries(adapters)) await tryOut(name, start, storeFor(name))

const database = await PGlite.create()
const onPostgres = postgresStore({ pool: database, onWarning: () => {} })
await onPostgres.setup()
await tryOut('postgres', adapters.node, onPostgres)
await database.close()

const client = new Redis(process.env.REDIS_URL)
// A prefix of its own: two versions of Node run this on one server.
const onRedis = redisStore({ client, prefix: `check-${process.version}`, onWarning: () => {} })
await onRedis.setup()
await tryOut('redis', adapters.node, onRedis)
client.disconnect()

assert.ok(Object.values(testkit).some((value) => typeof value === 'function'))

// Names, entries, and the entries that need jose.
for (const provider of ['stripe', 'slack', 'standard-webhooks', shopify, netlify]) {
  const request = await testkit.signRequest(provider, { secret: 'whsec_c2VjcmV0', event: 'a.b' })
  const body = new TextEncoder().encode(request.body)
  const verified = await verify(provider, { ...request, body, secret: 'whsec_c2VjcmV0' })
  assert.equal(verified.valid, true)
  const forged = await verify(provider, { ...request, body, secret: 'whsec_b3RoZXI=' })
  assert.equal(forged.valid, false)
}
