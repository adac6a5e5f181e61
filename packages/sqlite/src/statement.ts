/** What a column or a parameter can be. */
export type SqlValue = string | number | Uint8Array | null

/** One row as the database gave it, by column name. */
export type SqlRow = Readonly<Record<string, unknown>>

/** A statement written with `:name` parameters, ready for drivers that know nothing but `?`. */
export interface Statement {
  readonly text: string
  /** The parameter of each `?`, in order. */
  readonly names: readonly string[]
}

/** What every SQL of this package runs on: one connection, synchronous. */
export interface Connection {
  /** The rows of a statement; of a write, those of its `RETURNING`. */
  rows(statement: Statement, parameters: Readonly<Record<string, SqlValue>>): readonly SqlRow[]
  /** Runs a script without parameters. */
  run(script: string): void
  /** Whether a transaction is open on it, by whomever. */
  inTransaction(): boolean
}

/** Prepares a text with `:name` parameters. A colon in a literal is not understood. */
export function statement(text: string): Statement {
  const names: string[] = []
  const positional = text.replace(/:([A-Za-z]+)/g, (_, name: string) => {
    names.push(name)
    return '?'
  })
  return { text: positional, names }
}

/** Runs work in a transaction that takes the write lock at once: a read that turns into a write could fail half-way. */
export function inWriteTransaction<T>(connection: Connection, work: () => T): T {
  return atomically(connection, work, 'BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK')
}

/** Runs work inside a transaction of somebody else, all of it or nothing. */
export function inSavepoint<T>(connection: Connection, work: () => T): T {
  const name = 'webhook_inbox_settles'
  return atomically(
    connection,
    work,
    `SAVEPOINT ${name}`,
    `RELEASE ${name}`,
    `ROLLBACK TO ${name}; RELEASE ${name}`,
  )
}

function atomically<T>(
  connection: Connection,
  work: () => T,
  begin: string,
  commit: string,
  rollBack: string,
): T {
  connection.run(begin)
  try {
    const value = work()
    connection.run(commit)
    return value
  } catch (error) {
    try {
      connection.run(rollBack)
    } catch {
      // A full disk or a failed write has rolled back already; the first error is the one to tell.
    }
    throw error
  }
}

/** Reads a text column. */
export function text(row: SqlRow, column: string): string {
  const value = row[column]
  if (typeof value === 'string') return value
  throw unexpected(column, value)
}

/** Reads a text column that may be NULL. */
export function optionalText(row: SqlRow, column: string): string | undefined {
  return row[column] === null ? undefined : text(row, column)
}

/** Reads a whole number: 64-bit integers come as bigint from connections that are set so. */
export function integer(row: SqlRow, column: string): number {
  const value = row[column]
  const number = typeof value === 'bigint' ? Number(value) : value
  if (typeof number === 'number' && Number.isSafeInteger(number)) return number
  throw unexpected(column, value)
}

/** Reads a whole number that may be NULL. */
export function optionalInteger(row: SqlRow, column: string): number | undefined {
  return row[column] === null ? undefined : integer(row, column)
}

/** Reads bytes as a plain `Uint8Array`, whatever subclass a driver makes. */
export function optionalBytes(row: SqlRow, column: string): Uint8Array | undefined {
  const value = row[column]
  if (value === null) return undefined
  if (value instanceof Uint8Array)
    return new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
  throw unexpected(column, value)
}

function unexpected(column: string, value: unknown): Error {
  return new TypeError(`Column "${column}" holds a ${value === null ? 'NULL' : typeof value}.`)
}
