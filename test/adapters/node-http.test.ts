import { adapterGuarantees } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { onNodeHttp } from './node-http.ts'

const runner = { describe, it, expect }

adapterGuarantees(runner, onNodeHttp)
