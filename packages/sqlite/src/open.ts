import { optionError } from '@webhook-inbox/core'
import { isSqliteDatabase, type SqliteDatabase } from './driver.ts'

/**
 * Opens a file with the runtime's own SQLite: `bun:sqlite` on Bun, `node:sqlite` elsewhere.
 * @throws WebhookInboxError `ERR_OPTION` when the runtime has none, the folder does not exist, or the path is no file
 */
export function openDatabase(where: string, path: string): SqliteDatabase {
  const Database = builtInDatabase()
  if (Database === undefined) {
    throw optionError(
      `${where}: this runtime has no built-in SQLite, so "path" cannot be opened. Use Node 22.13 or newer (node:sqlite) or Bun, or install better-sqlite3 and hand a database in: sqliteStore({ database: new Database(${JSON.stringify(path)}) }).`,
    )
  }
  checkFolder(where, path)
  const database = attempt(where, () => new Database(path))
  if (isSqliteDatabase(database)) return database
  throw optionError(
    `${where}: this runtime's SQLite is not one that the store knows. Hand a database in: sqliteStore({ database }).`,
  )
}

function attempt(where: string, open: () => unknown): unknown {
  try {
    return open()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw optionError(`${where}: "path" cannot be opened: ${reason}.`)
  }
}

type DatabaseConstructor = new (path: string) => unknown

// Asked for at run time: an import would fail where the module is missing, and bundlers would look for it.
function builtInDatabase(): DatabaseConstructor | undefined {
  const { process } = globalThis
  const [module, name] =
    process?.versions?.bun === undefined
      ? ['node:sqlite', 'DatabaseSync']
      : ['bun:sqlite', 'Database']
  const found: unknown = process?.getBuiltinModule?.(module)
  const Database: unknown =
    typeof found === 'object' && found !== null ? Reflect.get(found, name) : undefined
  return isConstructor(Database) ? Database : undefined
}

function isConstructor(value: unknown): value is DatabaseConstructor {
  return typeof value === 'function'
}

function checkFolder(where: string, path: string): void {
  if (path === ':memory:') return
  const { getBuiltinModule } = globalThis.process
  const { dirname, resolve } = getBuiltinModule('node:path')
  const folder = dirname(resolve(path))
  if (getBuiltinModule('node:fs').existsSync(folder)) return
  throw optionError(
    `${where}: the folder of "path" does not exist: ${folder}. Create it first, for instance mkdirSync(${JSON.stringify(folder)}, { recursive: true }).`,
  )
}
