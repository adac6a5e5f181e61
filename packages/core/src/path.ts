import { optionError } from './errors.ts'

/**
 * Compares a request's path with the option `path`: without the case, the query and one trailing slash. The
 * routers of Express and Koa do so too: a route that they find must never be behind a request that we have let pass.
 * @returns always true when no path is set: the middleware then owns every request that reaches it
 * @throws WebhookInboxError `ERR_OPTION` when the path does not begin with `/`, or is a pattern
 */
export function pathMatcher(path: string | undefined): (requestPath: string) => boolean {
  if (path === undefined) return () => true
  if (typeof path !== 'string' || !path.startsWith('/') || /[?#]/.test(path)) {
    throw optionError(
      `"path" must begin with "/" and have no query, for instance path: '/webhooks/github'.`,
    )
  }
  if (/\/[:*]/.test(path)) {
    throw optionError(
      `"path" is no pattern: it is compared as it stands, so ${JSON.stringify(path)} would match nothing. Leave it out and mount the middleware on the route.`,
    )
  }
  const wanted = normalized(path)
  return (requestPath) => normalized(requestPath.split(/[?#]/, 1)[0] ?? '') === wanted
}

function normalized(path: string): string {
  return (path.length > 1 && path.endsWith('/') ? path.slice(0, -1) : path || '/').toLowerCase()
}
