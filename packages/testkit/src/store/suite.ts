import { type StoreGuaranteeId, storeGuaranteeNeeds, storeGuaranteeTitles } from '../guarantees.ts'
import type { Runner } from '../runner.ts'
import { claimGuarantees } from './claims.ts'
import { runStoreGuarantee, type StoreGuarantee, type StoreHarness } from './harness.ts'
import { operatorGuarantees } from './operator.ts'
import { orderGuarantees } from './order.ts'
import { queueGuarantees } from './queue.ts'
import { retentionGuarantees } from './retention.ts'
import { settlingGuarantees } from './settling.ts'

// The type makes a number without code, and code without a number, an error of the compiler.
const guarantees: Readonly<Record<StoreGuaranteeId, StoreGuarantee>> = {
  ...claimGuarantees,
  ...settlingGuarantees,
  ...retentionGuarantees,
  ...queueGuarantees,
  ...orderGuarantees,
  ...operatorGuarantees,
}

/**
 * Registers what every store guarantees as tests of the given runner, one for each number, each on an empty store
 * of its own. The rules are those of the `Store` contract in `@webhook-inbox/core`.
 *
 * @example
 * storeGuarantees({ describe, it, expect }, {
 *   name: 'memory',
 *   create: async ({ now }) => ({ store: memoryStore({ now }), close: async () => {} }),
 * })
 */
export function storeGuarantees(runner: Runner, harness: StoreHarness): void {
  const { describe, it, expect } = runner
  describe(`store guarantees: ${harness.name}`, () => {
    for (const id of storeGuaranteeIds(harness)) {
      it(`${id} ${storeGuaranteeTitles[id]}`, () =>
        runStoreGuarantee(harness, expect, guarantees[id]))
    }
  })
}

/** The numbers that apply to a store with the features that its harness declares. */
export function storeGuaranteeIds({
  features = [],
}: Pick<StoreHarness, 'features'>): StoreGuaranteeId[] {
  return Object.keys(storeGuaranteeTitles)
    .filter(isId)
    .filter((id) => {
      const need = storeGuaranteeNeeds[id]
      return need === undefined || features.includes(need)
    })
}

function isId(name: string): name is StoreGuaranteeId {
  return Object.hasOwn(storeGuaranteeTitles, name)
}
