/** The address that a sender was given, wherever a proxy has put the request since. */
import { optionError } from './errors.ts'
import { pathOf } from './providers/content.ts'

/** Makes the public address of a request, without a change to how its path and query are written. */
export type PublicUrl = (url: string) => string

/**
 * Reads the option `publicUrl`. An origin replaces the request's own; an address with a path replaces the path too,
 * for proxies that change it. The query is always the request's.
 * @throws WebhookInboxError `ERR_OPTION` for what is no http address
 */
export function publicUrlOption(where: string, value: unknown): PublicUrl | undefined {
  if (value === undefined) return undefined
  const parts =
    typeof value === 'string' ? /^(https?:\/\/[^/?#\s]+)(\/[^?#\s]*)?$/i.exec(value) : null
  if (parts === null) {
    throw optionError(
      `${where}: "publicUrl" must be the address that the sender was given, without a query, for instance 'https://hooks.example.com' or 'https://example.com/hooks/in'.`,
    )
  }
  const [, origin = '', path = ''] = parts
  return (url) => {
    const own = pathOf(url)
    if (path === '' || path === '/') return origin + own
    const query = own.indexOf('?')
    return origin + path + (query === -1 ? '' : own.slice(query))
  }
}
