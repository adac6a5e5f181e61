import type { Store } from '@webhook-inbox/core'
import type { Connection } from './connection.ts'

/** What may lose records, in plain words. */
export interface RedisWarning {
  readonly code: 'eviction' | 'persistence' | 'unchecked'
  readonly message: string
}

export function warnProcess({ code, message }: RedisWarning): void {
  process.emitWarning(message, {
    type: 'WebhookInboxWarning',
    code: `WEBHOOK_INBOX_REDIS_${code.toUpperCase()}`,
  })
}

export function createSetup(_options: {
  readonly connection: Connection
  readonly store: Store
  readonly prefix: string
  readonly onWarning: (warning: RedisWarning) => void
}): () => Promise<void> {
  return async () => {}
}
