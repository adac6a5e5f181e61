/** The adapters that hold a response of node:http, on one server, for every runtime that has that module. */
import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { githubWebhook as onExpress } from '@webhook-inbox/express'
import { githubWebhook as onKoa } from '@webhook-inbox/koa'
import { githubWebhook as onNode } from '@webhook-inbox/node'
import compression from 'compression'
import express, { type RequestHandler } from 'express'
import Koa from 'koa'
import { type Gate, secret, watchedStore } from '../../packages/node/test/support.ts'

const store = watchedStore()
const options = { secret, store, maxHeldResponseBytes: 100_000 }

const answers: Readonly<Record<string, (res: ServerResponse) => unknown>> = {
  end: (res) => res.end('hello'),
  pieces(res) {
    res.writeHead(201, { 'x-made': 'yes' })
    res.write('hel')
    res.end('lo')
  },
  flushed(res) {
    res.flushHeaders()
    setTimeout(() => res.end('hello'), 5)
  },
  piped: (res) => Readable.from(['hel', 'lo']).pipe(res),
  twice(res) {
    res.on('error', () => {})
    res.end('hello')
    res.end('again')
  },
  refused(res) {
    res.statusCode = 500
    res.end('hello')
  },
  large(res) {
    for (let piece = 0; piece < 4; piece += 1) res.write(Buffer.alloc(50_000, 'x'))
    res.end('end')
  },
  destroyed: (res) => res.destroy(),
}
const answerOf = (res: ServerResponse, url = ''): unknown => answers[url.slice(1)]?.(res)

const route: RequestHandler = (req, res) => void answerOf(res, req.url)
const app = express()
app.use(['/express', '/compressed'], onExpress(options))
app.use('/express/json', (req, res) => void res.json(req.body))
app.use('/express', route)
app.use('/compressed', compression({ threshold: 0 }), route)
app.use('/compressing', compression({ threshold: 0 }), onExpress(options), route)

const koa = new Koa().use(onKoa(options)).use((ctx) => {
  const [, , name] = ctx.path.split('/')
  if (name === 'json') {
    ctx.body = Reflect.get(ctx.request, 'body')
    return
  }
  ctx.respond = false
  ctx.res.statusCode = 200
  answerOf(ctx.res, `/${name}`)
})
const guard = onNode(options)

// Settlements wait until the test says so.
let held: Gate | undefined
let before = 0
const control: Readonly<Record<string, (id: string) => unknown>> = {
  hold() {
    before = store.calls.length
    held = store.holdSettlements()
  },
  settling: () => store.settling(settlements(before) + 1),
  open: () => held?.open(),
  state: async (deliveryId) =>
    (await store.settled({ provider: 'github', endpoint: '292430182', deliveryId })).state,
}
const settlements = (end: number): number =>
  store.calls.slice(0, end).filter((name) => name === 'complete' || name === 'fail').length

const koaListener = koa.callback()
const listener: RequestListener = async (req, res) => {
  const [, first = '', second = ''] = (req.url ?? '').split('/')
  const asked = control[first]
  if (asked !== undefined) res.end(await asked(second))
  else if (first === 'koa') koaListener(req, res)
  else if (first === 'node') guard(req, res, () => answerOf(res, `/${second}`))
  else app(req, res)
}

const server = createServer(listener)
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(`ready ${typeof address === 'object' ? address?.port : ''}`)
})
