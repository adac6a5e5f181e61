import { adapterGuarantees } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { onHonoFetch, onHonoNode } from './hono.ts'
import { inSqlite } from './sqlite.ts'

const runner = { describe, it, expect }

adapterGuarantees(runner, onHonoNode)
adapterGuarantees(runner, onHonoFetch)
adapterGuarantees(runner, { ...onHonoNode, name: 'hono on Node, sqlite', store: inSqlite })
