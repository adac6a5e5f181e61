import { getRequestListener } from '@hono/node-server'
import { githubWebhook, type WebhookVariables } from '@webhook-inbox/hono'
import type { AdapterHarness, AdapterSetup } from '@webhook-inbox/testkit'
import { Hono, type MiddlewareHandler } from 'hono'
import { listen, webhookPath } from './server.ts'

type Env = { Variables: Partial<WebhookVariables> }

function appOf({ options, mount, respond }: AdapterSetup): Hono<Env> {
  const app = new Hono<Env>()
  app.onError((_error, c) => c.text('Internal Server Error', 500)) // nothing on stderr
  const route: MiddlewareHandler<Env> = async (c) => {
    const answer = await respond(c.get('webhook'))
    if (answer === undefined) return
    const { status, headers = {}, body = null } = answer
    return new Response(body, { status, headers })
  }
  if (mount === 'route') app.post(webhookPath, githubWebhook(options), route)
  else app.use(githubWebhook({ ...options, path: webhookPath }), route)
  return app
}

export const onHonoNode: AdapterHarness = {
  name: 'hono on Node',
  features: ['route', 'next', 'socket'],
  serve: (setup) => listen(getRequestListener(appOf(setup).fetch)),
}

export const onHonoFetch: AdapterHarness = {
  name: 'hono by fetch',
  features: ['route', 'next'],
  async serve(setup) {
    const app = appOf(setup)
    return {
      url: 'http://hooks.example.test',
      fetch: async (request) => app.request(request),
      close: async () => {},
    }
  },
}
