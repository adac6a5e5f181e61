import { entry } from '../define.ts'
import type { Provider } from '../provider.ts'
import { all4xx, day, mebibyte } from './units.ts'

/** Azure DevOps service hooks */
export const azureDevops: Provider = /* @__PURE__ */ entry(() => ({
  name: 'azure-devops',
  title: 'Azure DevOps service hooks',
  signature: { scheme: 'token', header: 'authorization', prefix: 'Basic ', basic: true },
  deliveryId: { body: 'id' },
  event: { body: 'eventType' },
  maxBodyBytes: 2 * mebibyte,
  retriesByItself: true,
  retentionMs: 2 * day,
  // It repeats nothing but 408, 502, 503 and 504.
  stopStatuses: [...all4xx, 429, 500],
  secretIs: 'user:password of its Basic authentication',
  sources: [
    {
      url: 'https://learn.microsoft.com/en-us/azure/devops/service-hooks/services/webhooks',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://learn.microsoft.com/en-us/azure/devops/service-hooks/troubleshoot',
      asOf: '2026-12-01',
      facts: ['retries', 'stop', 'maxBody'],
    },
  ],
}))
