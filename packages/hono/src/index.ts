export { type ClaimedDelivery, PermanentError, WebhookInboxError } from '@webhook-inbox/core'
export {
  getWebhook,
  githubWebhook,
  type HonoWebhookOptions,
  type WebhookMiddleware,
  type WebhookVariables,
  webhook,
} from './middleware.ts'
