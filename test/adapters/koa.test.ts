import { adapterGuarantees } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { onKoa2, onKoa3 } from './koa.ts'
import { inSqlite } from './sqlite.ts'

const runner = { describe, it, expect }

adapterGuarantees(runner, onKoa2)
adapterGuarantees(runner, onKoa3)
adapterGuarantees(runner, { ...onKoa3, name: 'koa 3, sqlite', store: inSqlite })
