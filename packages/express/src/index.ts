export { PermanentError } from '@webhook-inbox/core'
export { captureRawBody, getWebhook } from '@webhook-inbox/node'
export {
  type ExpressAnyWebhookOptions,
  type ExpressContext,
  type ExpressWebhookOptions,
  githubWebhook,
  providerWebhook,
  slackWebhook,
  standardWebhook,
  stripeWebhook,
  webhook,
} from './middleware.ts'
