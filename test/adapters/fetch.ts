import { githubWebhook } from '@webhook-inbox/core'
import type { AdapterHarness } from '@webhook-inbox/testkit'
import { webhookPath } from './server.ts'

export const onFetch: AdapterHarness = {
  name: 'core fetch',
  features: [],
  async serve({ options, mount }) {
    const { handler, queue, ...rest } = options
    const all = { ...rest, ...(mount === 'path' ? { path: webhookPath } : {}) }
    if (handler === undefined && queue !== true)
      throw new Error('A fetch handler needs a handler, or a queue.')
    return {
      url: 'http://hooks.example.test',
      fetch: githubWebhook(handler === undefined ? { ...all, queue: true } : { ...all, handler }),
      close: async () => {},
    }
  },
}
