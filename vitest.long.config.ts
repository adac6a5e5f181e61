import { mergeConfig } from 'vitest/config'
import config from './vitest.config.ts'

// What compiles or downloads for minutes; the default suite leaves it out.
const long = mergeConfig(config, { test: { testTimeout: 900_000, hookTimeout: 900_000 } })
long.test = { ...long.test, include: ['**/*.long.test.ts'], exclude: ['**/node_modules/**'] }
export default long
