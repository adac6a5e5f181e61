/** Meta's webhooks: entries, of changes, of messages and statuses. */
import { readPath } from '../fields.ts'
import type { ItemParts } from '../provider.ts'

/**
 * One item for each message and each status of a message; any other change, and what stands in any other list of an
 * entry (`messaging`, `standby` …), is one item. An entry without a list of events is an item itself.
 */
export function metaItems(payload: unknown): readonly ItemParts[] | undefined {
  const entries = readPath(payload, 'entry')
  return Array.isArray(entries) ? entries.flatMap(itemsOfEntry) : undefined
}

function itemsOfEntry(entry: unknown): readonly ItemParts[] {
  const items = listsOf(entry).flatMap(([name, list]) =>
    name === 'changes'
      ? list.flatMap((change) => itemsOfChange(entry, change))
      : list.map((event) => itemOfList(name, event)),
  )
  return items.length > 0 ? items : [{ id: undefined, event: 'entry', payload: entry }]
}

// `changed_fields` is a list of names: the entry says what it says as a whole.
function listsOf(entry: unknown): readonly (readonly [string, readonly unknown[]])[] {
  if (typeof entry !== 'object' || entry === null) return []
  return Object.entries(entry).flatMap(([name, list]) =>
    Array.isArray(list) && list.every((one) => typeof one === 'object' && one !== null)
      ? [[name, list] as const]
      : [],
  )
}

function itemsOfChange(entry: unknown, change: unknown): readonly ItemParts[] {
  const field = textAt(change, 'field')
  const value = readPath(change, 'value')
  // The same message may stand in several fields: as one that was received, and as one that another app has in hand.
  const ofField = (id: string | undefined): string | undefined =>
    id === undefined || field === 'messages' ? id : `${field}:${id}`
  const known = [
    ...listAt(value, 'messages').map((message) => ({
      id: ofField(textAt(message, 'id')),
      event: field,
      payload: oneOf(change, value, 'messages', message),
    })),
    ...listAt(value, 'statuses').map((status) => ({
      id: ofField(joined(textAt(status, 'id'), textAt(status, 'status'))),
      event: field,
      payload: oneOf(change, value, 'statuses', status),
    })),
  ]
  if (known.length > 0) return known
  // A page that is renamed there and back says the same again, at another time; another page may say it, too.
  const identity = [readPath(entry, 'id'), readPath(entry, 'time'), change]
  return [{ id: undefined, event: field, payload: change, identity }]
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

function itemOfList(name: string, event: unknown): ItemParts {
  const mid = textAt(event, 'message.mid') ?? textAt(event, 'postback.mid')
  // One that is taken back keeps the id that it had.
  const isNew = readPath(event, 'message.is_deleted') !== true
  const id = mid === undefined || (name === 'messaging' && isNew) ? mid : undefined
  return { id, event: name, payload: event, identity: [name, event] }
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
