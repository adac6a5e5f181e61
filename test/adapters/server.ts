import { createServer, type RequestListener } from 'node:http'
import type { AdapterFixture } from '@webhook-inbox/testkit'

export const webhookPath = '/webhooks/github'

/** Serves a listener on a free port of 127.0.0.1. */
export async function listen(listener: RequestListener): Promise<AdapterFixture> {
  const server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('The server has no port.')
  return {
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      server.closeAllConnections()
      await closed
    },
  }
}
