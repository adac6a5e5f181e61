/** Meta's webhooks: entries, of changes, of messages and statuses. */
import { readPath } from '../fields.ts'
import type { ItemParts } from '../provider.ts'

/**
 * One item for each message and each status of a message; what else a change holds is one item. Messenger's and
 * Instagram's `messaging` have the message's `mid`.
 */
export function metaItems(payload: unknown): readonly ItemParts[] | undefined {
  const entries = readPath(payload, 'entry')
  if (!Array.isArray(entries)) return undefined
  return entries.flatMap((entry) => [
    ...listAt(entry, 'changes').flatMap(itemsOfChange),
    ...listAt(entry, 'messaging').map(itemOfMessaging),
  ])
}

function itemsOfChange(change: unknown): readonly ItemParts[] {
  const field = textAt(change, 'field')
  const value = readPath(change, 'value')
  const known = [
    ...listAt(value, 'messages').map((message) => ({
      id: textAt(message, 'id'),
      event: field,
      payload: oneOf(change, value, 'messages', message),
    })),
    ...listAt(value, 'statuses').map((status) => ({
      id: joined(textAt(status, 'id'), textAt(status, 'status')),
      event: field,
      payload: oneOf(change, value, 'statuses', status),
    })),
  ]
  return known.length > 0 ? known : [{ id: undefined, event: field, payload: change }]
}

// The change as it came, with this one message in place of all.
function oneOf(change: unknown, value: unknown, list: string, item: unknown): unknown {
  const rest = { ...(typeof value === 'object' && value !== null ? value : {}) }
  Reflect.deleteProperty(rest, 'messages')
  Reflect.deleteProperty(rest, 'statuses')
  return {
    ...(typeof change === 'object' && change !== null ? change : {}),
    value: { ...rest, [list]: [item] },
  }
}

function itemOfMessaging(messaging: unknown): ItemParts {
  const id = textAt(messaging, 'message.mid') ?? textAt(messaging, 'postback.mid')
  return { id, event: 'messaging', payload: messaging }
}

function listAt(value: unknown, path: string): readonly unknown[] {
  const list = readPath(value, path)
  return Array.isArray(list) ? list : []
}

function textAt(value: unknown, path: string): string | undefined {
  const text = readPath(value, path)
  return typeof text === 'string' && text !== '' ? text : undefined
}

function joined(a: string | undefined, b: string | undefined): string | undefined {
  return a === undefined || b === undefined ? undefined : `${a}:${b}`
}
