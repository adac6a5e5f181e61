import { createServer } from 'node:http'
import { getWebhook, githubWebhook } from '@webhook-inbox/express'
import express from 'express'
import { inbox, path, secret, serve, work } from './receiver.ts'

const app = express()
app.post(path, githubWebhook({ secret, inbox }), async (req, res) => {
  await work(getWebhook(req))
  res.sendStatus(204)
})
serve(createServer(app))
