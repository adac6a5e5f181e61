import { githubWebhook } from '@webhook-inbox/core'
import { adapterGuarantees } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'

adapterGuarantees(
  { describe, it, expect },
  {
    name: 'core fetch',
    features: [],
    async serve({ options, mount }) {
      const { handler } = options
      if (handler === undefined) throw new Error('A fetch handler needs a handler.')
      const path = mount === 'path' ? { path: '/webhooks/github' } : {}
      return {
        url: 'http://hooks.example.test',
        fetch: githubWebhook({ ...options, ...path, handler }),
        close: async () => {},
      }
    },
  },
)
