import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The folder of the workspace. */
export const root: string = join(import.meta.dirname, '..')

/** One package that is published. */
export interface PublicPackage {
  readonly name: string
  readonly folder: string
  /** Names of the packages of this workspace that it is built on. */
  readonly needs: readonly string[]
}

/** The published packages, each after the ones that it is built on. */
export function publicPackages(): readonly PublicPackage[] {
  const folder = join(root, 'packages')
  const found = readdirSync(folder).map((name) => readPackage(join(folder, name)))
  const names = new Set(found.map(({ name }) => name))
  const waiting = found.map((entry) => ({
    ...entry,
    needs: entry.needs.filter((name) => names.has(name)),
  }))
  const ordered: PublicPackage[] = []
  while (waiting.length > 0) {
    const next = waiting.findIndex(({ needs }) =>
      needs.every((name) => ordered.some((built) => built.name === name)),
    )
    const [ready] = waiting.splice(next, 1)
    if (next === -1 || ready === undefined) {
      throw new Error(`These packages depend on each other: ${waiting.map(({ name }) => name)}`)
    }
    ordered.push(ready)
  }
  return ordered
}

function readPackage(folder: string): PublicPackage {
  const manifest: unknown = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (!isManifest(manifest)) throw new Error(`${folder}/package.json has no name`)
  return { name: manifest.name, folder, needs: Object.keys(manifest.dependencies ?? {}) }
}

function isManifest(
  value: unknown,
): value is { readonly name: string; readonly dependencies?: Readonly<Record<string, string>> } {
  return typeof value === 'object' && value !== null && 'name' in value
}
