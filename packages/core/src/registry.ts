import type { ClaimedDelivery } from './delivery.ts'
import type { GitHubDelivery } from './github-delivery.ts'

/**
 * What a handler gets, by provider. Extend it for providers of your own:
 * `declare module '@webhook-inbox/core' { interface WebhookRegistry { acme: AcmeDelivery } }`.
 */
export interface WebhookRegistry {
  readonly github: GitHubDelivery
}

/** A delivery of any provider in the registry: what a request carries, where its type cannot know the route. */
export type AnyWebhook = WebhookRegistry[keyof WebhookRegistry]

/** The delivery of one provider; of a provider that is not in the registry, one whose payload is unknown. */
export type WebhookOf<Name> = Name extends keyof WebhookRegistry
  ? WebhookRegistry[Name]
  : ClaimedDelivery

/** A claimed delivery whose payload has a type of yours, for instance `ProviderDelivery<'stripe', Stripe.Event>`. */
export type ProviderDelivery<
  Name extends string,
  Payload = unknown,
  Event extends string = string,
> = ClaimedDelivery<Payload, Event> & { readonly provider: Name }
