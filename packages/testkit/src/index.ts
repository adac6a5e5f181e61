export type {
  AdapterFeature,
  AdapterFixture,
  AdapterHarness,
  AdapterSetup,
  RouteAnswer,
} from './adapter/harness.ts'
export { adapterGuaranteeIds, adapterGuarantees } from './adapter/suite.ts'
export {
  type AdapterGuaranteeId,
  adapterGuaranteeTitles,
  type StoreGuaranteeId,
  storeGuaranteeTitles,
} from './guarantees.ts'
export type { Expect, Runner } from './runner.ts'
export { type SignedRequest, type SignRequestOptions, signRequest } from './sign-request.ts'
export type { StoreFeature, StoreFixture, StoreHarness } from './store/harness.ts'
export { storeGuaranteeIds, storeGuarantees } from './store/suite.ts'
