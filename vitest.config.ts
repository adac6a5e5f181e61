import { defineConfig } from 'vitest/config'

// Vitest hands these to Node as well. 'import' must not be among them: Node would then take the ES build of a
// package for a require(), which Express 5 does not survive.
const conditions = ['@webhook-inbox/source', 'node']

// Tests run the sources: no build stands between an edit and its test.
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['@webhook-inbox/source'] } },
  test: {
    silent: 'passed-only',
    include: ['packages/*/test/**/*.test.ts', 'test/**/*.test.ts', 'examples/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/*.long.test.ts'],
    execArgv: ['--conditions=@webhook-inbox/source'],
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // What is waited for comes in its own time on a busy machine; a test that waits for nothing fails by its own limit.
    expect: { poll: { timeout: 15_000 } },
  },
})
