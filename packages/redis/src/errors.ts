/** What an error of ioredis or Redis means for somebody who reads a log. */
import { hasCode, storeUnavailable, WebhookInboxError } from '@webhook-inbox/core'

// The first word of an error reply; older servers put a dash before it when a script met it.
const meanings: Readonly<Record<string, string>> = {
  OOM: 'its memory is full ("maxmemory" is reached). Give it more memory; nothing was changed',
  READONLY:
    'this node is a read-only replica. Connect to the primary; with Sentinel, new Redis({ sentinels, name })',
  LOADING: 'it is still loading its data',
  MASTERDOWN: 'its primary is down',
  CLUSTERDOWN: 'the cluster is down: not every slot is served',
  TRYAGAIN: 'a slot is being moved',
  NOREPLICAS: 'too few replicas are connected ("min-replicas-to-write")',
  MISCONF: 'it cannot save to its disk, and refuses writes until it can',
  BUSY: 'another script keeps it busy',
  NOAUTH: 'it wants a password',
  WRONGPASS: 'the password is wrong',
  NOPERM: 'the user of this client may not run the command, or not on these keys',
  CROSSSLOT: 'the keys of one script are in several slots',
}
const meaningful = new RegExp(`(?:^|-)(${Object.keys(meanings).join('|')})\\b`)

function meaningOf(error: unknown): string | undefined {
  const word = error instanceof Error ? meaningful.exec(error.message)?.[1] : undefined
  return word === undefined ? undefined : meanings[word]
}

/** What a call throws to its caller: our errors as they are, everything else as `ERR_STORE_UNAVAILABLE`. */
export function asStoreError(what: string, error: unknown): WebhookInboxError {
  if (error instanceof WebhookInboxError) return error
  const meaning = meaningOf(error)
  const message = error instanceof Error ? error.message : String(error)
  return storeUnavailable(
    meaning === undefined
      ? `Redis could not run "${what}": ${message}`
      : `Redis could not run "${what}": ${meaning}.`,
    withoutCommand(error),
  )
}

// ioredis hangs the whole command on its errors: tokens and bodies of deliveries, which belong into no log.
function withoutCommand(error: unknown): unknown {
  if (typeof error === 'object' && error !== null) Reflect.deleteProperty(error, 'command')
  return error
}

/**
 * Whether the server refused one record rather than the call: a key of somebody else under our name, or a script that
 * tripped over what it found. Others of the same batch may well succeed.
 */
export function isAboutOneRecord(error: unknown): boolean {
  if (hasCode(error, 'ERR_STORE_UNAVAILABLE') || meaningOf(error) !== undefined) return false
  return error instanceof Error && /^(ERR|WRONGTYPE) /.test(error.message)
}
