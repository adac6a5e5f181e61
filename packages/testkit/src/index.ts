export type { Expect, Runner } from './runner.ts'
export { storeGuaranteeIds, storeGuarantees } from './store/guarantees.ts'
export type { StoreFeature, StoreFixture, StoreHarness } from './store/harness.ts'
export { type StoreGuaranteeId, storeGuaranteeTitles } from './store/titles.ts'
