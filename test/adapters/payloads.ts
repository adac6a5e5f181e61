import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

/** One example payload of GitHub. */
export interface Example {
  readonly event: string
  readonly payload: object
}

/** The payloads of `@octokit/webhooks-examples`. */
export function readExamples(): Example[] {
  const file = createRequire(import.meta.url).resolve('@octokit/webhooks-examples')
  const groups: unknown = JSON.parse(readFileSync(file, 'utf8'))
  if (!Array.isArray(groups)) throw new Error('The examples are no list.')
  return groups.flatMap((group: unknown) => {
    if (!isGroup(group)) throw new Error('A group of examples has no name or no examples.')
    return group.examples.map((payload) => ({ event: group.name, payload }))
  })
}

function isGroup(value: unknown): value is { name: string; examples: readonly object[] } {
  return (
    typeof value === 'object' &&
    value !== null &&
    'name' in value &&
    typeof value.name === 'string' &&
    'examples' in value &&
    Array.isArray(value.examples) &&
    value.examples.every((example) => typeof example === 'object' && example !== null)
  )
}
