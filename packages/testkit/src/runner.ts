/**
 * The parts of a test runner that the suites use. vitest, jest and bun test fit as they are; for `node:test` see
 * the README.
 */
export interface Runner {
  describe(name: string, body: () => void): unknown
  it(name: string, body: () => Promise<void>): unknown
  /** Only ever given plain values: strings, numbers, booleans, lists and objects without `undefined` in them. */
  expect: Expect
}

/** Deep equality, thrown when it does not hold. */
export type Expect = (actual: unknown) => { toEqual(expected: unknown): unknown }
