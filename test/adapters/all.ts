import type { AdapterHarness } from '@webhook-inbox/testkit'
import { onExpress4, onExpress5 } from './express.ts'
import { onFetch } from './fetch.ts'
import { onHonoFetch, onHonoNode } from './hono.ts'
import { onKoa2, onKoa3 } from './koa.ts'
import { onNodeHttp } from './node-http.ts'

/** Every adapter of this repository, on every framework version that it is for. */
export const adapters: readonly AdapterHarness[] = [
  onExpress4,
  onExpress5,
  onKoa2,
  onKoa3,
  onHonoNode,
  onHonoFetch,
  onFetch,
  onNodeHttp,
]
