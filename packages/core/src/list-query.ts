/** The checks of a list's filters, the same for every store. */
import { optionError, rejectUnknownOptions } from './errors.ts'
import { limitOption } from './options.ts'
import type { ListQuery } from './store.ts'

const states: readonly unknown[] = ['pending', 'processing', 'completed', 'failed', 'dead']
const names = ['state', 'provider', 'event', 'since', 'until', 'limit', 'cursor'] as const

/**
 * A query with its limit filled in. For stores: a filter that is misspelt must not answer with other records than
 * the ones that were asked for.
 * @throws WebhookInboxError `ERR_OPTION` for an unknown filter, or a value that is none
 */
export function readListQuery(query: ListQuery = {}): ListQuery & { readonly limit: number } {
  rejectUnknownOptions('list', query, names)
  const { state, since, until, limit = 100 } = query
  if (state !== undefined && !states.includes(state))
    throw optionError(`list: "state" must be one of ${states.join(', ')}.`)
  for (const name of ['provider', 'event'] as const) {
    if (query[name] !== undefined && typeof query[name] !== 'string')
      throw optionError(`list: "${name}" must be a text.`)
  }
  for (const [name, time] of Object.entries({ since, until })) {
    if (time !== undefined && !(time instanceof Date && Number.isFinite(time.getTime())))
      throw optionError(`list: "${name}" must be a valid Date.`)
  }
  return { ...query, limit: limitOption('list', limit, 1000) }
}

/**
 * Reads the cursor of a store that numbers its records: the number of the last one of the page before.
 * @throws WebhookInboxError `ERR_OPTION` when it is none
 */
export function readNumberCursor(cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined
  const number =
    typeof cursor === 'string' && /^[1-9][0-9]{0,15}$/.test(cursor) ? Number(cursor) : Number.NaN
  if (Number.isSafeInteger(number)) return number
  throw optionError('list: "cursor" must be the "next" of a page that this store gave.')
}
