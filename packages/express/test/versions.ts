import type { Express } from 'express'
import express5 from 'express'
import express4 from 'express4'
import { serve, type TestServer } from '../../node/test/support.ts'

/** Every version of Express that the tests run on. */
export const versions = [
  ['Express 5', express5],
  ['Express 4', express4],
] as const

const servers: TestServer[] = []

export async function listen(app: Express): Promise<TestServer> {
  const server = await serve(app)
  servers.push(server)
  return server
}

export async function closeAll(): Promise<void> {
  await Promise.all(servers.splice(0).map((server) => server.close()))
}
