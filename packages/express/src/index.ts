export { PermanentError } from '@webhook-inbox/core'
export { captureRawBody, getWebhook } from '@webhook-inbox/node'
export {
  type ExpressContext,
  type ExpressWebhookOptions,
  githubWebhook,
  webhook,
} from './middleware.ts'
