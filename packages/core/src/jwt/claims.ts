import type { ReadableRequest } from '../providers/provider.ts'

/** The id of the token (`jti`) in MessageBird's header: read of a request whose token is verified. */
export function jwtId({ headers }: ReadableRequest): string | undefined {
  const [, claims = ''] = headers['messagebird-signature-jwt']?.split('.') ?? []
  try {
    const text = atob(claims.replaceAll('-', '+').replaceAll('_', '/'))
    const id: unknown = Reflect.get(Object(JSON.parse(text)), 'jti')
    return typeof id === 'string' ? id : undefined
  } catch {
    return undefined
  }
}
