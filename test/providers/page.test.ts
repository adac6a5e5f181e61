import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { providersPage } from '../../scripts/providers-page.ts'

it('packages/core/PROVIDERS.md is what the entries say (pnpm providers writes it)', () => {
  const page = readFileSync(join(import.meta.dirname, '../../packages/core/PROVIDERS.md'), 'utf8')
  expect(page).toBe(providersPage())
})
