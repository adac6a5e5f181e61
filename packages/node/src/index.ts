export { writeAnswer } from './answer.ts'
export { captureRawBody, readNodeBody } from './body.ts'
export {
  defaultMaxHeldResponseBytes,
  type HeldResponse,
  type HoldOptions,
  holdResponse,
} from './hold.ts'
export {
  heldResponseLimit,
  type NodeClaim,
  type NodeOnlyOptions,
  nodeOptionNames,
  type ReceiveOptions,
  receiveNode,
} from './receive.ts'
export { getWebhook, setProperty } from './request.ts'
export {
  githubWebhook,
  type NodeAnyWebhookOptions,
  type NodeContext,
  type NodeListener,
  type NodeWebhookOptions,
  providerWebhook,
  slackWebhook,
  standardWebhook,
  stripeWebhook,
  webhook,
} from './webhook.ts'
