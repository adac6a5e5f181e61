/** Checked by the compiler: the name of a handler tells what it gets. */
import { createWorker, type Inbox, type WebhookNamed } from '@webhook-inbox/core'

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Assert<Condition extends true> = Condition

export function make(inbox: Inbox): unknown {
  return createWorker({
    inbox,
    handlers: {
      'github.push': ({ payload }) => payload.ref.length,
      push: ({ payload }) => payload.ref.length,
      'github.pull_request.opened': ({ payload }) => payload.pull_request.title.length,
      'issues.labeled': {
        handler: ({ payload }) => payload.issue.title,
        retry: { maxAttempts: 2 },
      },
      'github.*': (webhook) => (webhook.event === 'push' ? webhook.payload.ref : webhook.id),
      'acme.made': ({ payload }) => String(payload),
      '*': ({ id }, { signal }) => [id, signal.aborted],
    },
  })
}

export type Checks = [
  Assert<Equal<WebhookNamed<'github.push'>['event'], 'push'>>,
  Assert<Equal<WebhookNamed<'pull_request.opened'>['payload']['action'], 'opened'>>,
  Assert<Equal<WebhookNamed<'acme.made'>['payload'], unknown>>,
]
