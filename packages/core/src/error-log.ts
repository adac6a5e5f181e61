import { swallow } from './observer.ts'

/** Hears of what nobody else would: the caller's hook, or the console when there is none. Never throws. */
export function errorHook(
  onError: ((error: unknown) => void) | undefined,
): (error: unknown) => void {
  return (error) => swallow(() => (onError ?? logError)(error))
}

// An error's message may carry what a sender typed, so the console gets its kind and where it came from.
function logError(error: unknown): void {
  console.error(
    `webhook-inbox: ${kindOf(error)} (pass onError to get the error itself)${framesOf(error)}`,
  )
}

function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return `something that is no error (${typeof error}) was thrown`
  const code: unknown = Reflect.get(error, 'code')
  return typeof code === 'string' ? `${error.name} ${code}` : error.name
}

function framesOf(error: unknown): string {
  const stack = error instanceof Error ? error.stack : undefined
  const frames = stack?.split('\n').filter((line) => /^\s+at /.test(line)) ?? []
  return frames.map((line) => `\n${line}`).join('')
}
