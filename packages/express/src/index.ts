export { PermanentError } from '@webhook-inbox/core'
export { captureRawBody } from '@webhook-inbox/node'
export {
  type ExpressContext,
  type ExpressWebhookOptions,
  getWebhook,
  githubWebhook,
  webhook,
} from './middleware.ts'
