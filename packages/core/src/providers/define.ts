import { checkEntry } from './check.ts'
import type { Provider } from './provider.ts'

/**
 * Makes an entry for a sender of your own: checked, and frozen.
 *
 * @example
 * const acme = defineProvider({
 *   name: 'acme',
 *   signature: {
 *     scheme: 'hmac', hash: 'SHA-256', encoding: 'hex',
 *     header: 'acme-signature', separator: ',', prefix: 'v1=', content: '{timestamp}.{body}',
 *     timestamp: { header: 'acme-signature', separator: ',', prefix: 't=', unit: 's', pastMs: 300_000 },
 *   },
 *   deliveryId: { body: 'id' }, event: { body: 'type' },
 *   retriesByItself: true, retentionMs: 7 * 86_400_000,
 * })
 *
 * @throws WebhookInboxError `ERR_OPTION` for a field that is missing, unknown or wrong, with its name
 */
export function defineProvider<const Entry extends Provider>(entry: Entry): Entry {
  checkEntry(entry)
  return freeze(entry)
}

/**
 * An entry of the catalogue. A function makes it, so that a bundler can see that leaving it out changes nothing; that it
 * is right is shown by a test and not looked at again.
 */
export function entry(make: () => Provider): Provider {
  return freeze(make())
}

/** Frozen, and all that is in it. */
export function freeze<Value>(value: Value): Value {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  if (value instanceof RegExp) return Object.freeze(value)
  for (const inner of Object.values(value)) freeze(inner)
  return Object.freeze(value)
}
