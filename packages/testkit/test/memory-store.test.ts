import { memoryStore } from '@webhook-inbox/core'
import { storeGuarantees } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'

storeGuarantees(
  { describe, it, expect },
  {
    name: 'memory',
    features: ['second', 'watch'],
    async create({ now }) {
      const store = memoryStore({ now })
      // Its data lives in one object: a second instance is the same one.
      return { store, second: async () => store, close: () => store.close() }
    },
  },
)
