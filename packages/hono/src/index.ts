export { type ClaimedDelivery, PermanentError, WebhookInboxError } from '@webhook-inbox/core'
export {
  getWebhook,
  githubWebhook,
  type HonoAnyWebhookOptions,
  type HonoWebhookOptions,
  providerWebhook,
  slackWebhook,
  standardWebhook,
  stripeWebhook,
  type WebhookMiddleware,
  type WebhookVariables,
  webhook,
} from './middleware.ts'
