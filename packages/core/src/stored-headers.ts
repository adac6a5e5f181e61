/**
 * What a worker has to know of a stored request beside its bytes and headers, for it knows no endpoint, no address and
 * no signature. It stands among the stored headers under names that no request can put there: an allow-list chooses
 * those.
 */
import type { BodyKind } from './providers/provider.ts'

/** Of the endpoint and of the request, as they were when it was received. */
export interface StoredNotes {
  /** The sender's id, where the record's key holds another. */
  readonly deliveryId?: string | undefined
  /** What the signature proves the body to be. */
  readonly bodyIs?: BodyKind | undefined
  /** The events that the endpoint wants of a list. */
  readonly events?: Iterable<string> | undefined
  /** The body is one item of a list; this is the event of that list. */
  readonly itemOf?: string | undefined
}

const names = {
  deliveryId: 'webhook-inbox-id',
  bodyIs: 'webhook-inbox-body-is',
  events: 'webhook-inbox-events',
  itemOf: 'webhook-inbox-item-of',
} as const

/** The headers to store. */
export function withNotes(
  headers: Readonly<Record<string, string>>,
  { deliveryId, bodyIs, events, itemOf }: StoredNotes,
): Readonly<Record<string, string>> {
  return {
    ...headers,
    ...(deliveryId === undefined ? {} : { [names.deliveryId]: deliveryId }),
    ...(bodyIs === undefined ? {} : { [names.bodyIs]: bodyIs }),
    // No event holds a blank.
    ...(events === undefined ? {} : { [names.events]: [...events].join(' ') }),
    ...(itemOf === undefined ? {} : { [names.itemOf]: itemOf }),
  }
}

/** The headers as they were sent, and the notes. */
export function readNotes(stored: Readonly<Record<string, string>>): {
  readonly headers: Readonly<Record<string, string>>
  readonly notes: StoredNotes
} {
  const {
    [names.deliveryId]: deliveryId,
    [names.bodyIs]: bodyIs,
    [names.events]: events,
    [names.itemOf]: itemOf,
    ...headers
  } = stored
  return {
    headers,
    notes: {
      deliveryId,
      bodyIs: bodyIs === 'form' || bodyIs === 'json' ? bodyIs : undefined,
      events: events?.split(' '),
      itemOf,
    },
  }
}
