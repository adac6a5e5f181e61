/** The tables, and how they come to be. */
import { WebhookInboxError } from '@webhook-inbox/core'
import type { Send } from './client.ts'
import { functionTexts } from './functions.ts'
import { boolean, integer } from './row.ts'

/** The names of one store's tables, quoted and with their schema. */
export interface Tables {
  /** One narrow row for each delivery. */
  readonly records: string
  /** Bytes beside it: the stored request, and the result for later copies. */
  readonly contents: string
  /** One row for each line in which deliveries wait, while any may: when to look at it. */
  readonly lines: string
  /** One row for each record that has failed: its last attempts. */
  readonly attempts: string
  /** One row for each entity: when the newest of its events happened. */
  readonly latest: string
  /** One row: the version of the schema. */
  readonly meta: string
  /** Where fences come from. */
  readonly fences: string
  /** Schema and table without quotes, for messages. */
  readonly name: string
  readonly schemaName: string
  readonly tableName: string
}

export function tablesOf(schemaName: string, tableName: string): Tables {
  const named = (suffix: string) => `"${schemaName}"."${tableName}${suffix}"`
  return {
    records: named(''),
    contents: named('_contents'),
    lines: named('_lines'),
    attempts: named('_attempts'),
    latest: named('_latest'),
    meta: named('_meta'),
    fences: named('_fence'),
    name: `${schemaName}.${tableName}`,
    schemaName,
    tableName,
  }
}

/** The version that this package works with: the number of {@link migrations}. */
const schemaVersion = 1

/**
 * Records whose time to be purged is set: completed, dead, and failed without bytes. Said in the same words by the
 * index and by the question, so that the one serves the other.
 */
export const purgeable = `(state IN ('c', 'd') OR (state = 'f' AND due_at IS NULL))`

/** The minute from which a record may be purged, at the earliest: index and question share the words. */
export const purgeMinute = '(updated_at / 60000 + keep_s / 60)'

/** What leads from one version to the next, in order. A migration that was published is never changed. */
function migrations(tables: Tables): readonly (readonly string[])[] {
  const { records, contents, lines, attempts, latest, meta, fences, tableName } = tables
  return [
    [
      // Columns in the order of their alignment: eight bytes, four, two, one, then those of any length. Times are epoch
      // milliseconds. A completed record holds NULL in token, until_at, due_at, place and line, which costs nothing.
      `CREATE TABLE ${records} (
        fence bigint NOT NULL,
        token bigint,
        created_at bigint NOT NULL,
        updated_at bigint NOT NULL,
        until_at bigint,
        due_at bigint,
        place bigint,
        keep_s integer NOT NULL,
        attempt smallint NOT NULL,
        state "char" NOT NULL,
        settled_by "char",
        has_payload boolean NOT NULL,
        has_result boolean NOT NULL,
        key uuid NOT NULL,
        delivery_uuid uuid,
        line uuid,
        fingerprint bytea,
        provider text NOT NULL,
        endpoint text NOT NULL,
        delivery_id text,
        event text,
        action text,
        code text,
        CONSTRAINT "${tableName}_key" PRIMARY KEY (key),
        CONSTRAINT "${tableName}_state" CHECK (state IN ('p', 'r', 'c', 'f', 'd'))
      ) WITH (
        fillfactor = 100,
        autovacuum_vacuum_scale_factor = 0.02,
        autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_insert_scale_factor = 0.05,
        autovacuum_analyze_scale_factor = 0.02
      )`,
      `COMMENT ON COLUMN ${records}.state IS 'p pending, r processing, c completed, f failed, d dead'`,
      `COMMENT ON COLUMN ${records}.settled_by IS 'f fail, r release: how the present token has given the record back; a completion shows in the state'`,
      `COMMENT ON COLUMN ${records}.key IS 'the first 128 bits of the SHA-256 of the key parts, each with its length'`,
      `COMMENT ON COLUMN ${records}.until_at IS 'end of the lease, or the next attempt time'`,
      `COMMENT ON COLUMN ${records}.due_at IS 'until_at of unfinished records whose bytes are stored: what a worker may run'`,
      `COMMENT ON COLUMN ${records}.keep_s IS 'seconds that the record is kept from updated_at; unfinished records with bytes are kept for ever'`,
      // What a worker may run: small, and NULL is not in it.
      `CREATE INDEX "${tableName}_due" ON ${records} (due_at) WHERE due_at IS NOT NULL AND line IS NULL`,
      // The head of a line, whether one of it is held, and the dead ones of those whose dead stop them.
      `CREATE INDEX "${tableName}_head" ON ${records} (line, place) WHERE line IS NOT NULL AND state <> 'd'`,
      `CREATE INDEX "${tableName}_held" ON ${records} (line) WHERE line IS NOT NULL AND state = 'r'`,
      `CREATE INDEX "${tableName}_dead" ON ${records} (line, place) WHERE line IS NOT NULL AND state = 'd'`,
      // What is not completed, for the operator: few rows.
      `CREATE INDEX "${tableName}_open" ON ${records} (created_at) WHERE state <> 'c'`,
      // Many records share a minute, and equal index entries are stored once: about seven bytes a record.
      `CREATE INDEX "${tableName}_purge" ON ${records} (${purgeMinute}) WHERE ${purgeable}`,
      // For pages over everything, newest first: a few bytes for each half megabyte of table.
      `CREATE INDEX "${tableName}_created" ON ${records} USING brin (created_at) WITH (pages_per_range = 64, autosummarize = on)`,
      `CREATE TABLE ${contents} (
        key uuid NOT NULL,
        payload_until bigint,
        headers text,
        body bytea,
        result bytea,
        CONSTRAINT "${tableName}_contents_key" PRIMARY KEY (key)
      ) WITH (autovacuum_vacuum_scale_factor = 0.05)`,
      `CREATE INDEX "${tableName}_contents_until" ON ${contents} (payload_until) WHERE payload_until IS NOT NULL`,
      `CREATE TABLE ${lines} (
        due_at bigint NOT NULL,
        line uuid NOT NULL,
        CONSTRAINT "${tableName}_lines_line" PRIMARY KEY (line)
      ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05)`,
      `COMMENT ON COLUMN ${lines}.line IS 'the first 128 bits of the SHA-256 of its name'`,
      `CREATE INDEX "${tableName}_lines_due" ON ${lines} (due_at)`,
      `CREATE TABLE ${attempts} (
        key uuid NOT NULL,
        log jsonb NOT NULL,
        CONSTRAINT "${tableName}_attempts_key" PRIMARY KEY (key)
      ) WITH (autovacuum_vacuum_scale_factor = 0.05)`,
      `COMMENT ON COLUMN ${attempts}.log IS 'the last ten that did not complete: [attempt, ended at, duration in milliseconds, code]'`,
      `CREATE TABLE ${latest} (
        occurred_at bigint NOT NULL,
        purge_at bigint NOT NULL,
        entity uuid NOT NULL,
        CONSTRAINT "${tableName}_latest_entity" PRIMARY KEY (entity)
      ) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)`,
      `COMMENT ON COLUMN ${latest}.entity IS 'the first 128 bits of the SHA-256 of its name'`,
      `CREATE INDEX "${tableName}_latest_purge" ON ${latest} (purge_at)`,
      // Without a cache in the sessions: a fence is greater than every one issued before it.
      `CREATE SEQUENCE ${fences} AS bigint CACHE 1 MAXVALUE ${Number.MAX_SAFE_INTEGER}`,
      `CREATE TABLE ${meta} (
        is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
        schema_version integer NOT NULL
      )`,
      ...functionTexts(tables),
      `INSERT INTO ${meta} (schema_version) VALUES (1)`,
    ],
  ]
}

export function schemaText(tables: Tables): string {
  const statements = migrations(tables).map((migration, index) =>
    [`-- Version ${index + 1}`, ...migration.map((statement) => `${unindent(statement)};`)].join(
      '\n',
    ),
  )
  return `${[`CREATE SCHEMA IF NOT EXISTS "${tables.schemaName}";`, ...statements].join('\n\n')}\n`
}

function unindent(statement: string): string {
  return statement.replace(/\n {6}/g, '\n')
}

/** Creates or migrates the tables in one statement, which is one transaction. Safe from several processes at once. */
export async function migrate(send: Send, tables: Tables): Promise<void> {
  // Read first: tables that are there need neither the lock nor the right to create some.
  if ((await versionOf(send, tables)) === schemaVersion) return
  const steps = migrations(tables).map(
    (migration, index) => `
      IF found <= ${index} THEN
        ${migration.map((statement) => `${statement};`).join('\n')}
      END IF;`,
  )
  // The lock ends with the statement, so a pooler between the two changes nothing.
  await send(`DO $migrate$
    DECLARE found integer := 0;
    BEGIN
      PERFORM pg_advisory_xact_lock(hashtextextended('webhook-inbox ${tables.name}', 0));
      IF to_regnamespace('"${tables.schemaName}"') IS NULL THEN
        CREATE SCHEMA "${tables.schemaName}";
      END IF;
      IF to_regclass('${tables.meta}') IS NOT NULL THEN
        SELECT schema_version INTO found FROM ${tables.meta};
      END IF;
      ${steps.join('')}
    END
  $migrate$`)
}

async function versionOf(send: Send, tables: Tables): Promise<number> {
  const [found] = await send(
    `SELECT to_regclass($1) IS NOT NULL AS has_records, to_regclass($2) IS NOT NULL AS has_meta`,
    [tables.records, tables.meta],
  )
  if (found === undefined) throw new TypeError('The client answered a question with no row.')
  const hasMeta = boolean(found, 'has_meta')
  if (!hasMeta && !boolean(found, 'has_records')) return 0
  const [row] = hasMeta ? await send(`SELECT schema_version FROM ${tables.meta}`) : []
  if (row === undefined) {
    throw new WebhookInboxError(
      'ERR_STORE_SETUP',
      `The database has a table ${tables.name} that is not this store's. Choose another name: postgresStore({ table: 'my_inbox', … }).`,
    )
  }
  const version = integer(row, 'schema_version')
  if (version <= schemaVersion) return version
  throw new WebhookInboxError(
    'ERR_STORE_SETUP',
    `The tables of ${tables.name} have schema version ${version}, this package knows ${schemaVersion}: update @webhook-inbox/postgres in this process.`,
  )
}
