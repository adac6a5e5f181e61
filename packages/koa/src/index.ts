export { PermanentError } from '@webhook-inbox/core'
export {
  getWebhook,
  githubWebhook,
  type KoaAnyWebhookOptions,
  type KoaWebhookOptions,
  providerWebhook,
  slackWebhook,
  standardWebhook,
  stripeWebhook,
  type WebhookMiddleware,
  type WebhookState,
  webhook,
} from './middleware.ts'
