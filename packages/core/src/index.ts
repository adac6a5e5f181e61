export type {
  AbortReason,
  ClaimedDelivery,
  Delivery,
  DeliveryKey,
  DeliveryState,
  HeaderMap,
} from './delivery.ts'
export {
  type ErrorCode,
  errorCodes,
  hasCode,
  isPermanentError,
  nearest,
  optionError,
  PermanentError,
  rejectUnknownOptions,
  storeUnavailable,
  WebhookInboxError,
} from './errors.ts'
export {
  type FetchContext,
  type FetchHandler,
  type FetchWebhookOptions,
  githubWebhook,
  readRequestBody,
  webhook,
} from './fetch.ts'
export { type HeadersInput, mediaType, toHeaderMap } from './headers.ts'
export {
  type Claim,
  type ClaimSettled,
  createInbox,
  type Inbox,
  type InboxOptions,
  type OpenRequest,
  type OpenResult,
  type PolicyOptions,
  type RetentionOptions,
  type RetryOptions,
} from './inbox.ts'
export { type MemoryStoreOptions, memoryStore } from './memory-store.ts'
export type {
  DeliveryRef,
  Observer,
  ObserverEvent,
  StoreOperation,
  WarningCode,
} from './observer.ts'
export type { RunEnd, SettleAs, SettleBy } from './outcome.ts'
export { pathMatcher } from './path.ts'
export { getProvider, type ProviderName, providers } from './providers/catalogue.ts'
export type { ParseCode, VerifyCode } from './providers/interpret.ts'
export type { FieldSource, HmacSignature, Provider, Source } from './providers/provider.ts'
export {
  type BodyResult,
  type ClaimedReceipt,
  createReceiver,
  type Handler,
  type Receipt,
  type Receiver,
  type ReceiverOptions,
  type ReceiverRequest,
  receiverOptionNames,
  type Settlement,
} from './receiver.ts'
export {
  type Answer,
  type RefusalCode,
  type RunProblemCode,
  refusalAnswer,
  statusHeader,
  toResponse,
} from './response.ts'
export { type BackoffOptions, backoffMs } from './retry.ts'
export type { Secret, SecretRequest } from './secret.ts'
export type {
  ClaimEntry,
  ClaimResult,
  CompleteOptions,
  DeliveryRecord,
  FailOptions,
  Hold,
  ListPage,
  ListQuery,
  RenewResult,
  RetryResult,
  SettleResult,
  Store,
  StoredPayload,
  StoreStats,
  TakenDelivery,
} from './store.ts'
export { type Verification, type VerifyRequest, verify } from './verify.ts'
