import { entry } from '../define.ts'
import { snsContent, verifySns } from '../functions/aws-sns.ts'
import type { Provider } from '../provider.ts'
import { all4xx, day, second } from './units.ts'

/** AWS SNS. A `SubscriptionConfirmation` reaches the handler, which decides whether to fetch its `SubscribeURL`. */
export const awsSns: Provider = /* @__PURE__ */ entry(() => ({
  name: 'aws-sns',
  title: 'AWS SNS',
  signature: {
    scheme: 'function',
    secret: { pattern: /^arn:aws[a-z-]*:sns:|-----BEGIN /, scope: /^arn:aws[a-z-]*:sns:/ },
    readsTime: true,
    asksKeys: true,
    verify: verifySns,
  },
  deliveryId: { body: 'MessageId' },
  event: { body: 'Type' },
  covers: ({ payload }) => snsContent(payload),
  ackDeadlineMs: 15 * second,
  retriesByItself: true,
  retentionMs: day,
  stopStatuses: all4xx,
  secretIs:
    "the topic's ARN, so that nobody else's topic is taken for it (after a blank the certificate in PEM may follow)",
  sources: [
    { url: 'npm:sns-validator@0.3.5 index.js', asOf: '2026-12-01', facts: ['signature'] },
    {
      url: 'https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html',
      asOf: '2026-12-01',
      facts: ['signature', 'deliveryId', 'event'],
    },
    {
      url: 'https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html',
      asOf: '2026-12-01',
      facts: ['retries', 'ackDeadline', 'stop'],
    },
  ],
  unconfirmed: ['maxBody: 256 KB'],
}))
