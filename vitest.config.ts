import { defineConfig } from 'vitest/config'

const conditions = ['@webhook-inbox/source', 'node', 'import', 'module', 'default']

// Tests run the sources: no build stands between an edit and its test.
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['@webhook-inbox/source'] } },
  test: {
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/*.long.test.ts'],
    execArgv: ['--conditions=@webhook-inbox/source'],
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
