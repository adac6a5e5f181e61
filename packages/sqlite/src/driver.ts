import { optionError } from '@webhook-inbox/core'
import type { Connection, SqlRow, SqlValue } from './statement.ts'

/** A prepared statement, as far as the store uses it. */
export interface SqliteStatement {
  all(...values: SqlValue[]): unknown[]
  run(...values: SqlValue[]): unknown
}

/**
 * A synchronous SQLite connection, by its shape: `DatabaseSync` of `node:sqlite`, `Database` of better-sqlite3
 * and `Database` of `bun:sqlite` fit as they are.
 */
export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement
  exec(sql: string): unknown
  close(): unknown
  /** better-sqlite3 and `bun:sqlite`. */
  readonly inTransaction?: boolean
  /** `node:sqlite`, on newer Node. */
  readonly isTransaction?: boolean
}

/** Whether a value has the shape of a SQLite connection. */
export function isSqliteDatabase(value: unknown): value is SqliteDatabase {
  if (typeof value !== 'object' || value === null) return false
  return ['prepare', 'exec', 'close'].every(
    (method) => typeof Reflect.get(value, method) === 'function',
  )
}

const connections = new WeakMap<SqliteDatabase, Connection>()

/** The connection over a database handle: always the same one for the same handle, with its prepared statements. */
export function connectionTo(database: SqliteDatabase): Connection {
  let connection = connections.get(database)
  if (connection === undefined) {
    connection = connect(database)
    connections.set(database, connection)
  }
  return connection
}

function connect(database: SqliteDatabase): Connection {
  const prepared = new Map<string, (...values: SqlValue[]) => unknown[]>()

  function prepare(sql: string): (...values: SqlValue[]) => unknown[] {
    const statement = database.prepare(sql)
    // node:sqlite can be set to give rows as arrays.
    if ('setReturnArrays' in statement && typeof statement.setReturnArrays === 'function')
      statement.setReturnArrays(false)
    // better-sqlite3 wants to be told which statements have rows.
    const hasRows = !('reader' in statement) || statement.reader === true
    const run = hasRows
      ? (...values: SqlValue[]) => statement.all(...values)
      : (...values: SqlValue[]) => {
          statement.run(...values)
          return []
        }
    prepared.set(sql, run)
    return run
  }

  return {
    rows(statement, parameters) {
      const run = prepared.get(statement.text) ?? prepare(statement.text)
      return run(...statement.names.map((name) => parameters[name] ?? null)).filter(isRow)
    },

    run(script) {
      database.exec(script)
    },

    inTransaction() {
      if (database.inTransaction !== undefined) return database.inTransaction
      if (database.isTransaction !== undefined) return database.isTransaction
      // A deferred transaction takes no lock; the one thing that can be wrong is that there is one already.
      try {
        database.exec('BEGIN')
      } catch (error) {
        if (/within a transaction/.test(String(error))) return true
        throw error
      }
      database.exec('ROLLBACK')
      return false
    },
  }
}

function isRow(row: unknown): row is SqlRow {
  return typeof row === 'object' && row !== null
}

/**
 * Opens a file with the runtime's own SQLite: `bun:sqlite` on Bun, `node:sqlite` elsewhere.
 * @throws WebhookInboxError `ERR_OPTION` when the runtime has none, or the folder does not exist
 */
export function openDatabase(where: string, path: string): SqliteDatabase {
  const Database = builtInDatabase()
  if (Database === undefined) {
    throw optionError(
      `${where}: this runtime has no built-in SQLite, so "path" cannot be opened. Use Node 22.13 or newer (node:sqlite) or Bun, or install better-sqlite3 and hand a database in: sqliteStore({ database: new Database(${JSON.stringify(path)}) }).`,
    )
  }
  checkFolder(where, path)
  try {
    const database = new Database(path)
    if (isSqliteDatabase(database)) return database
  } catch (error) {
    throw optionError(`${where}: "path" cannot be opened: ${messageOf(error)}.`)
  }
  throw optionError(`${where}: this runtime's SQLite is not one that the store knows.`)
}

type DatabaseConstructor = new (path: string) => unknown

function builtInDatabase(): DatabaseConstructor | undefined {
  // Asked for at run time: an import would fail where the module is missing, and again in bundles for elsewhere.
  const { process } = globalThis
  const bun: unknown = builtInModule('bun:sqlite')
  const found =
    process?.versions?.bun === undefined
      ? property(builtInModule('node:sqlite'), 'DatabaseSync')
      : property(bun, 'Database')
  return isConstructor(found) ? found : undefined
}

function builtInModule(name: string): object | undefined {
  const found: unknown = globalThis.process?.getBuiltinModule?.(name)
  return typeof found === 'object' && found !== null ? found : undefined
}

function property(holder: unknown, name: string): unknown {
  return typeof holder === 'object' && holder !== null ? Reflect.get(holder, name) : undefined
}

function isConstructor(value: unknown): value is DatabaseConstructor {
  return typeof value === 'function'
}

function checkFolder(where: string, path: string): void {
  if (path === ':memory:') return
  const fs = globalThis.process.getBuiltinModule('node:fs')
  const { dirname, resolve } = globalThis.process.getBuiltinModule('node:path')
  const folder = dirname(resolve(path))
  if (fs.existsSync(folder)) return
  throw optionError(
    `${where}: the folder of "path" does not exist: ${folder}. Create it first, for instance mkdirSync(${JSON.stringify(folder)}, { recursive: true }).`,
  )
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
