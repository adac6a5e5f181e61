import Koa3 from 'koa'
import Koa2 from 'koa2'
import { serve, type TestServer } from '../../node/test/support.ts'

/** Every version of Koa that the tests run on. */
export const versions = [
  ['Koa 3', Koa3],
  ['Koa 2', Koa2],
] as const

const servers: TestServer[] = []

export async function listen(app: Koa3): Promise<TestServer> {
  app.silent = true
  const server = await serve(app.callback())
  servers.push(server)
  return server
}

export async function closeAll(): Promise<void> {
  await Promise.all(servers.splice(0).map((server) => server.close()))
}
