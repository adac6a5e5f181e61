import { githubWebhook } from '@webhook-inbox/core'
import type { AdapterHarness } from '@webhook-inbox/testkit'
import { webhookPath } from './server.ts'

export const onFetch: AdapterHarness = {
  name: 'core fetch',
  features: [],
  async serve({ options, mount }) {
    const { handler } = options
    if (handler === undefined) throw new Error('A fetch handler needs a handler.')
    return {
      url: 'http://hooks.example.test',
      fetch: githubWebhook({
        ...options,
        ...(mount === 'path' ? { path: webhookPath } : {}),
        handler,
      }),
      close: async () => {},
    }
  },
}
