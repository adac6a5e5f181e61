export { type BatchOptions, createBatch } from './batch.ts'
export type { Claim } from './claim.ts'
export type {
  AbortReason,
  ClaimedDelivery,
  Delivery,
  DeliveryItem,
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
  RetryError,
  rejectUnknownOptions,
  storeUnavailable,
  WebhookInboxError,
} from './errors.ts'
export {
  type FetchAnyWebhookOptions,
  type FetchContext,
  type FetchHandler,
  type FetchWebhookOptions,
  githubWebhook,
  providerWebhook,
  readRequestBody,
  slackWebhook,
  standardWebhook,
  stripeWebhook,
  webhook,
} from './fetch.ts'
export type { GitHubDelivery, GitHubEvent, GitHubPayloads } from './github-delivery.ts'
export type { HandlerEntry, WebhookNamed, WorkerContext, WorkerHandler } from './handlers.ts'
export { type HeadersInput, toHeaderMap } from './headers.ts'
export {
  createInbox,
  type Inbox,
  type OpenRequest,
  type OpenResult,
  type QueuedWork,
  type TakenClaim,
} from './inbox.ts'
export { readListQuery, readNumberCursor } from './list-query.ts'
export { type MemoryStoreOptions, memoryStore } from './memory-store.ts'
export type {
  DeliveryRef,
  Observer,
  ObserverEvent,
  StoreOperation,
  WarningCode,
} from './observer.ts'
export { limitOption, readClock } from './options.ts'
export type { RunEnd, SettleAs, SettleBy } from './outcome.ts'
export { pathMatcher } from './path.ts'
export type {
  InboxOptions,
  Policy,
  PolicyOptions,
  RetentionOptions,
  RetryOptions,
} from './policy.ts'
export {
  getProvider,
  jwtProviderNames,
  type ProviderName,
  providerNames,
  providerOf,
  providers,
} from './providers/catalogue.ts'
export { defineProvider } from './providers/define.ts'
export type { HandshakeMessage } from './providers/handshake.ts'
export type { ParseCode, ParsedItem } from './providers/parse.ts'
export type {
  AnswerValue,
  Carrier,
  Condition,
  Content,
  ContentCandidates,
  ContentFunction,
  DigestSignature,
  Fact,
  FieldSource,
  FunctionSignature,
  Handshake,
  HmacSignature,
  IdSource,
  ItemParts,
  ItemSource,
  JwtSignature,
  KeyRequest,
  KeySource,
  Provider,
  PublicKeySignature,
  PublicKeyText,
  ReadableRequest,
  SecretFormat,
  SecretValue,
  Signature,
  SignatureFunction,
  SignatureInput,
  SignedRequest,
  Source,
  SuccessAnswer,
  TextReader,
  TextSource,
  TimestampSource,
  TokenSignature,
  VerifyCode,
} from './providers/provider.ts'
export {
  type BodyResult,
  createProviderReceiver,
  createReceiver,
  type Receipt,
  type Receiver,
  type ReceiverRequest,
} from './receiver.ts'
export {
  type AnyEndpointOptions,
  type AnyWebhookOptions,
  type DeliveryOf,
  type EndpointOptions,
  type Handler,
  type ProviderReceiverOptions,
  type ReceiverOptions,
  receiverOptionNames,
  type StoreOrInbox,
  type WebhookOptions,
} from './receiver-options.ts'
export type {
  AnyWebhook,
  ProviderDelivery,
  WebhookOf,
  WebhookRegistry,
} from './registry.ts'
export {
  type Answer,
  type RefusalCode,
  type RunProblemCode,
  refusalAnswer,
  statusHeader,
  toResponse,
} from './response.ts'
export { type BackoffOptions, backoffMs } from './retry.ts'
export type { ClaimedReceipt, Settlement } from './run.ts'
export type { EncryptionOptions, UnsealCode } from './seal.ts'
export type { Secret, SecretRequest } from './secret.ts'
export { type SignMessage, signatureHeaders } from './sign.ts'
export type {
  AttemptRecord,
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
  Watch,
} from './store.ts'
export { type StripeOptions, stripeEntry } from './stripe.ts'
export {
  type Verification,
  type VerifiedDelivery,
  type VerifyRequest,
  verify,
  verifyProvider,
} from './verify.ts'
export {
  createWorker,
  type Worker,
  type WorkerHealth,
  type WorkerOptions,
} from './worker.ts'
