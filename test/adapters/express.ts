import { githubWebhook } from '@webhook-inbox/express'
import type { AdapterHarness, AdapterSetup } from '@webhook-inbox/testkit'
import express5, { type Express, type RequestHandler } from 'express'
import express4 from 'express4'
import { listen, webhookPath } from './server.ts'

function appOf(express: () => Express, { options, mount, respond }: AdapterSetup): Express {
  const app = express()
  app.set('env', 'test') // no stack on stderr
  // Express 4 sees no rejection of a handler: the error is handed on by hand.
  const route: RequestHandler = async (req, res, next) => {
    try {
      const answer = await respond(req.webhook)
      if (answer === undefined) return next()
      res.status(answer.status).set(answer.headers ?? {})
      if (answer.body === undefined) res.end()
      else res.send(answer.body)
    } catch (error) {
      next(error)
    }
  }
  if (mount === 'route') app.post(webhookPath, githubWebhook(options), route)
  else app.use(githubWebhook({ ...options, path: webhookPath }), route)
  return app
}

function harnessOf(name: string, express: () => Express) {
  return {
    name,
    features: ['route', 'next', 'socket'],
    app: (setup: AdapterSetup) => appOf(express, setup),
    serve: (setup: AdapterSetup) => listen(appOf(express, setup)),
  } as const satisfies AdapterHarness & { app(setup: AdapterSetup): Express }
}

export const onExpress4 = harnessOf('express 4', express4)
export const onExpress5 = harnessOf('express 5', express5)
