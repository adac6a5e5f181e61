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
