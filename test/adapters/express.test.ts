import { adapterGuarantees } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { onExpress4, onExpress5 } from './express.ts'
import { inSqlite } from './sqlite.ts'

const runner = { describe, it, expect }

adapterGuarantees(runner, onExpress4)
adapterGuarantees(runner, onExpress5)
adapterGuarantees(runner, { ...onExpress5, name: 'express 5, sqlite', store: inSqlite })
