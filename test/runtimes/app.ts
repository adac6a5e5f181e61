/** The two handlers that run outside Node, for every runtime of this folder. */
import { githubWebhook as fetchWebhook, memoryStore, verify } from '@webhook-inbox/core'
import { githubWebhook } from '@webhook-inbox/hono'
import { Hono } from 'hono'
import { streamText } from 'hono/streaming'
import { entryOf, requestOf, type Vector } from '../vector.ts'

const secret = "It's a Secret to Everybody"
const runs = { hono: 0, fetch: 0 }

const app = new Hono()
app.get('/runs', (c) => c.json(runs))
app.post('/hono', githubWebhook({ secret, store: memoryStore() }), async (c) => {
  runs.hono += 1
  const { rawBody, attempt } = c.get('webhook')
  // Every way to the body must still be open behind the middleware.
  const again = [await c.req.text(), await c.req.raw.clone().text(), await c.req.raw.text()]
  return c.json({ ran: new TextDecoder().decode(rawBody), attempt, again })
})
app.post('/text', githubWebhook({ secret, store: memoryStore() }), (c) => c.text('ran'))
app.post('/stream', githubWebhook({ secret, store: memoryStore() }), (c) =>
  streamText(c, async (out) => {
    for (const part of ['one ', 'two ', 'three']) await out.write(part)
  }),
)
app.post('/large', githubWebhook({ secret, store: memoryStore(), maxHeldResponseBytes: 8 }), (c) =>
  c.text('a body of more than eight bytes', 200),
)
app.post('/throws', githubWebhook({ secret, store: memoryStore() }), () => {
  throw new Error('database down')
})
app.onError((_, c) => c.text('busy', 503))
app.use(githubWebhook({ secret, store: memoryStore(), path: '/path', maxBodyBytes: 64 }))
const handleFetch = fetchWebhook({
  secret,
  store: memoryStore(),
  path: '/fetch',
  maxBodyBytes: 64,
  handler: () => {
    runs.fetch += 1
  },
})
// Requests that others have signed, judged by this runtime's own cryptography.
app.post('/vectors', async (c) => {
  const vectors: readonly Vector[] = await c.req.json()
  const verdicts = vectors.map(async (vector) => {
    const { valid } = await verify(entryOf(vector.provider), requestOf(vector))
    return valid
  })
  return c.json(await Promise.all(verdicts))
})
app.all('/fetch', (c) => handleFetch(c.req.raw))

/** Answers a request of the tests. */
export function answer(request: Request): Response | Promise<Response> {
  return app.fetch(request)
}
