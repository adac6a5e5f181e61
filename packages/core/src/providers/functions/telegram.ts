import type { ReadableRequest } from '../provider.ts'

/** The kind of an update is the name of the one field beside its id. */
export function telegramEvent({ payload }: ReadableRequest): string | undefined {
  if (typeof payload !== 'object' || payload === null) return undefined
  return Object.keys(payload).find((name) => name !== 'update_id')
}
