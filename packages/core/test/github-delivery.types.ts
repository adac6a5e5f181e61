/** Checked by the compiler: `pnpm run typecheck` fails when a type here is not what it says. */
import type { GitHubDelivery, GitHubEvent, GitHubPayloads } from '@webhook-inbox/core'

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
type Assert<Condition extends true> = Condition

/** The event narrows the payload, and an action narrows it further. */
export function read(webhook: GitHubDelivery): string {
  if (webhook.event === 'push') return webhook.payload.ref
  if (webhook.event === 'pull_request') return webhook.payload.pull_request.title
  if (webhook.event === 'pull_request_review') return webhook.payload.review.state
  if (webhook.event === 'issues' && webhook.payload.action === 'opened') {
    return webhook.payload.issue.title
  }
  return webhook.id
}

export type Checks = [
  // An action whose name looks like the beginning of another event.
  Assert<
    Equal<Extract<GitHubPayloads['pull_request']['action'], 'review_requested'>, 'review_requested'>
  >,
  Assert<Equal<GitHubPayloads['installation_repositories']['action'], 'added' | 'removed'>>,
  Assert<Equal<Extract<GitHubEvent, 'pull_request_review_thread'>, 'pull_request_review_thread'>>,
  // Every event has a payload.
  Assert<
    Equal<
      { [Name in GitHubEvent]: [GitHubPayloads[Name]] extends [never] ? Name : never }[GitHubEvent],
      never
    >
  >,
]
