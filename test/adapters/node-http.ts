import type { RequestListener } from 'node:http'
import { githubWebhook } from '@webhook-inbox/node'
import type { AdapterHarness, AdapterSetup } from '@webhook-inbox/testkit'
import { listen, webhookPath } from './server.ts'

function listenerOf({ options, mount, respond }: AdapterSetup): RequestListener {
  const guard = githubWebhook(mount === 'path' ? { ...options, path: webhookPath } : options)
  return (req, res) => {
    const answer404 = (): void => {
      res.statusCode = 404
      res.end()
    }
    if (mount === 'route' && (req.method !== 'POST' || req.url !== webhookPath)) return answer404()
    guard(req, res, async () => {
      const answer = await respond(req.webhook)
      if (answer === undefined) return answer404()
      res.writeHead(answer.status, answer.headers)
      res.end(answer.body)
    })
  }
}

export const onNodeHttp = {
  name: 'node:http',
  features: ['route', 'next', 'socket'],
  app: listenerOf,
  serve: (setup: AdapterSetup) => listen(listenerOf(setup)),
} as const satisfies AdapterHarness & { app(setup: AdapterSetup): RequestListener }
