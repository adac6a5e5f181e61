import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { storeGuaranteeIds } from '@webhook-inbox/testkit'
import { expect, it } from 'vitest'

it('runs under node:test', async () => {
  const file = fileURLToPath(new URL('./fixtures/memory-store.node-test.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--conditions=@webhook-inbox/source', '--test-reporter=tap', file],
    // Inside another runner's worker node:test would speak to a parent that is not there.
    { env: { ...process.env, NODE_TEST_CONTEXT: undefined, NODE_OPTIONS: '' } },
  )
  expect(stdout).toContain(`# pass ${storeGuaranteeIds({}).length}\n`)
  expect(stdout).toContain('# fail 0\n')
})
