/** Pieces of SQL that several statements share. */

/**
 * The time of the statement in epoch milliseconds. `statement_timestamp()` is one value for all rows of a batch, an
 * index can be asked with it, and in a caller's long transaction it is still the present. A statement that had to
 * wait judges with the time from before: leases only look longer to others and end sooner for the owner.
 */
export const clock =
  '(SELECT floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint AS now)'

/** The primary key of a record, of the columns `provider`, `endpoint` and `delivery_id` of `asked`. */
export function keyOf(asked: string): string {
  const part = (column: string) => `length(${asked}.${column})::text || ':' || ${asked}.${column}`
  return digestOf(`${part('provider')} || ${part('endpoint')} || ${asked}.delivery_id`)
}

/** The first 128 bits of the SHA-256 of a text. */
export function digestOf(text: string): string {
  return `encode(substr(sha256(convert_to(${text}, 'UTF8')), 1, 16), 'hex')::uuid`
}

/** Adds the entries of `rows` (`key` and `entry`, a log of one) to the logs of their records, which hold ten. */
export function addAttempts(attempts: string, rows: string): string {
  return `INSERT INTO ${attempts} AS kept (key, log) SELECT added.key, added.entry FROM (${rows}) AS added
          ON CONFLICT (key) DO UPDATE SET
            log = CASE WHEN jsonb_array_length(kept.log) >= 10 THEN kept.log - 0 ELSE kept.log END || excluded.log`
}

/** What the log says of an owner that let the record go by the end of its lease. */
export function lostOwner(row: string): string {
  return `jsonb_build_array(jsonb_build_array(${row}.attempt, ${row}.until_at, NULL, 'lease_expired'))`
}

/** A column of a batch: how it is called in `asked`, and its type. */
export type Column = readonly [name: string, type: string]

/**
 * `asked`: one row for each entry of a batch, from one array literal for each column, with `n`, its number from 1 on,
 * `key`, and `now`.
 */
export function askedRows(columns: readonly Column[]): string {
  const arrays = columns.map(([, type], index) => `$${index + 1}::text::${type}[]`)
  const names = columns.map(([name]) => name)
  return `asked AS MATERIALIZED (
    SELECT entry.*, ${keyOf('entry')} AS key, clock.now
    FROM unnest(${arrays.join(', ')}) WITH ORDINALITY AS entry(${names.join(', ')}, n), ${clock} AS clock
  )`
}

/** The columns that name a key. */
export const keyColumns: readonly Column[] = [
  ['provider', 'text'],
  ['endpoint', 'text'],
  ['delivery_id', 'text'],
]
