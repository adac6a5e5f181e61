import { adapterGuarantees } from '@webhook-inbox/testkit'
import { describe, expect, it } from 'vitest'
import { onFetch } from './fetch.ts'

const runner = { describe, it, expect }

adapterGuarantees(runner, onFetch)
