import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { day } from './units.ts'

/** Azure DevOps service hooks */
export const azureDevops: Provider = /* @__PURE__ */ entry(() => ({
  name: 'azure-devops',
  title: 'Azure DevOps service hooks',
  signature: { scheme: 'token', header: 'authorization', prefix: 'Basic ', basic: true },
  deliveryId: { body: 'id' },
  event: { body: 'eventType' },
  retriesByItself: true,
  retentionMs: 2 * day,
  secretIs: 'user:password of its Basic authentication',
  sources: [
    {
      url: 'https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
  ],
  unconfirmed: ['retries: a few'],
}))
