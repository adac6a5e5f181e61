/** The payloads of GitHub's events, from the types that GitHub generates out of its own description. */
import type { operations } from '@octokit/openapi-webhooks-types'
import type { ClaimedDelivery } from './delivery.ts'

/** Payload types by event name: the union of all actions of the event. */
export type GitHubPayloads = {
  // An operation is named `pull-request/opened`, or `push` where there is no action.
  [Name in keyof operations as EventOf<Name>]: BodyOf<operations[Name]>
}

/** The events that GitHub describes. A newer one arrives all the same: its payload has no type yet. */
export type GitHubEvent = keyof GitHubPayloads

/** A claimed delivery of GitHub; comparing `event` narrows `payload`. */
export type GitHubDelivery<Event extends GitHubEvent = GitHubEvent> = {
  [Name in Event]: ClaimedDelivery<GitHubPayloads[Name], Name> & { readonly provider: 'github' }
}[Event]

type EventOf<Operation> = Operation extends `${infer Event}/${string}`
  ? SnakeCase<Event>
  : Operation extends string
    ? SnakeCase<Operation>
    : never

type SnakeCase<Kebab extends string> = Kebab extends `${infer Head}-${infer Tail}`
  ? `${Head}_${SnakeCase<Tail>}`
  : Kebab

type BodyOf<Operation> = Operation extends {
  readonly requestBody: { readonly content: { readonly 'application/json': infer Body } }
}
  ? Body
  : never
