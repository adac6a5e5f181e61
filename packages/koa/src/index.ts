export { PermanentError } from '@webhook-inbox/core'
export {
  getWebhook,
  githubWebhook,
  type KoaWebhookOptions,
  type WebhookMiddleware,
  type WebhookState,
  webhook,
} from './middleware.ts'
