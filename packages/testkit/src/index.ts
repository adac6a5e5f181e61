export { adapterGuaranteeIds, adapterGuarantees } from './adapter/guarantees.ts'
export type {
  AdapterFeature,
  AdapterFixture,
  AdapterHarness,
  AdapterSetup,
  RouteAnswer,
} from './adapter/harness.ts'
export { type AdapterGuaranteeId, adapterGuaranteeTitles } from './adapter/titles.ts'
export type { Expect, Runner } from './runner.ts'
export { type SignedRequest, type SignRequestOptions, signRequest } from './sign-request.ts'
export { storeGuaranteeIds, storeGuarantees } from './store/guarantees.ts'
export type { StoreFeature, StoreFixture, StoreHarness } from './store/harness.ts'
export { type StoreGuaranteeId, storeGuaranteeTitles } from './store/titles.ts'
