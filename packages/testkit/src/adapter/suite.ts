import {
  type AdapterGuaranteeId,
  adapterGuaranteeNeeds,
  adapterGuaranteeTitles,
} from '../guarantees.ts'
import type { Runner } from '../runner.ts'
import { admissionGuarantees } from './admission.ts'
import { copyGuarantees } from './copies.ts'
import { faultGuarantees } from './faults.ts'
import { type AdapterGuarantee, type AdapterHarness, runAdapterGuarantee } from './harness.ts'
import { outcomeGuarantees } from './outcome.ts'
import { queuedGuarantees } from './queued.ts'
import { wireGuarantees } from './wire.ts'

// The type makes a number without code, and code without a number, an error of the compiler.
const guarantees: Readonly<Record<AdapterGuaranteeId, AdapterGuarantee>> = {
  ...admissionGuarantees,
  ...copyGuarantees,
  ...outcomeGuarantees,
  ...faultGuarantees,
  ...wireGuarantees,
  ...queuedGuarantees,
}

/**
 * Registers what every adapter guarantees as tests of the given runner, one for each number, each with a server and
 * a store of its own.
 */
export function adapterGuarantees(runner: Runner, harness: AdapterHarness): void {
  const { describe, it, expect } = runner
  describe(`adapter guarantees: ${harness.name}`, () => {
    for (const id of adapterGuaranteeIds(harness)) {
      it(`${id} ${adapterGuaranteeTitles[id]}`, () =>
        runAdapterGuarantee(harness, expect, guarantees[id]))
    }
  })
}

/** The numbers that apply to an adapter with the features that its harness declares. */
export function adapterGuaranteeIds({
  features,
}: Pick<AdapterHarness, 'features'>): AdapterGuaranteeId[] {
  return Object.keys(adapterGuaranteeTitles)
    .filter(isId)
    .filter((id) => {
      const need = adapterGuaranteeNeeds[id]
      return need === undefined || features.includes(need)
    })
}

function isId(name: string): name is AdapterGuaranteeId {
  return Object.hasOwn(adapterGuaranteeTitles, name)
}
