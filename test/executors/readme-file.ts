/** Files that the README of the Postgres package shows, run as they stand there. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ClaimedDelivery, Store } from '@webhook-inbox/core'
import type { PostgresClient } from '@webhook-inbox/postgres'
import { vi } from 'vitest'

/** What each of them exports, and `client`, which the tests add: the store's client made of the library alone. */
export interface ReadmeFile {
  readonly store: Store
  readonly client: PostgresClient
  handler(webhook: ClaimedDelivery): Promise<void>
  close(): Promise<void>
}

const root = join(import.meta.dirname, '../..')
const readme = readFileSync(join(root, 'packages/postgres/README.md'), 'utf8')

/** A folder inside the package of the tests, whose imports find what a reader would have installed. */
export function makeFolder(name: string): string {
  const parent = join(root, 'test/.tmp')
  mkdirSync(parent, { recursive: true })
  return mkdtempSync(join(parent, `${name}-`))
}

/**
 * Loads a block by the name that it carries there, with `DATABASE_URL` as given. Its file stays in `folder`.
 * @param options.added what the test needs besides, at the end of the file
 * @param options.folder one of {@link makeFolder}
 */
export async function loadReadmeFile<Loaded>(
  name: string,
  url: string,
  { added, folder }: { readonly added: string; readonly folder: string },
): Promise<Loaded> {
  const block = new RegExp(`^\`\`\`ts ${name}\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(readme)?.[1]
  if (block === undefined) throw new Error(`The README of the Postgres package has no "${name}".`)
  const file = join(folder, `${name}.ts`)
  writeFileSync(file, `${block}${added}\n`)
  vi.stubEnv('DATABASE_URL', url)
  try {
    const loaded: Loaded = await import(pathToFileURL(file).href)
    return loaded
  } finally {
    vi.unstubAllEnvs()
  }
}
