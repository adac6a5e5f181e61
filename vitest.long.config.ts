import { defineConfig } from 'vitest/config'
import usual from './vitest.config.ts'

// What takes minutes: compilers, other Nodes, endurance. The same as `test`, of other files.
export default defineConfig({
  ...usual,
  test: {
    ...usual.test,
    include: ['**/*.long.test.ts'],
    exclude: ['**/node_modules/**'],
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
})
