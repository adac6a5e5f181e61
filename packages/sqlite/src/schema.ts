import { WebhookInboxError } from '@webhook-inbox/core'
import { type Connection, integer, inWriteTransaction, statement } from './statement.ts'

/** The tables of one store, quoted. */
export interface Tables {
  /** One narrow row for each delivery. */
  readonly records: string
  /** Bytes beside it: the stored request, and the result for later copies. */
  readonly contents: string
  /** One row for each line in which deliveries wait: when to look at it. */
  readonly lines: string
  /** One row for each record that has failed: its last attempts. */
  readonly attempts: string
  /** One row for each entity: when the newest of its events happened. */
  readonly latest: string
  /** One row: schema version, identity of the store, last fence. */
  readonly meta: string
  /** The bare name, for indexes and messages. */
  readonly name: string
}

export function tablesOf(name: string): Tables {
  const named = (suffix: string) => `"${name}${suffix}"`
  return {
    name,
    records: named(''),
    contents: named('_contents'),
    lines: named('_lines'),
    attempts: named('_attempts'),
    latest: named('_latest'),
    meta: named('_meta'),
  }
}

const schemaVersion = 1

/**
 * `until_at` is the end of the lease (`processing`) or the next attempt time. `due_at` shows it for the rows that
 * a worker may run and that wait in no line, and is NULL for all others; as a generated column it cannot disagree
 * with the row. `line` and `place` are those of records that wait in one. Triggers say of a line that it has to be
 * looked at, whatever moved a record of it.
 * `purge_at` is NULL for work that must not be removed. `settled_by` is `fail` or `release` when the present token
 * has given the record back by that; a completion shows in the state.
 */
function tableScript({ name, records, contents, lines, attempts, latest, meta }: Tables): string {
  return `
    CREATE TABLE ${meta} (
      only INTEGER PRIMARY KEY CHECK (only = 1),
      schema_version INTEGER NOT NULL,
      store_id TEXT NOT NULL,
      last_fence INTEGER NOT NULL,
      last_place INTEGER NOT NULL
    );
    CREATE TABLE ${records} (
      id INTEGER PRIMARY KEY,
      provider TEXT NOT NULL,
      endpoint TEXT NOT NULL,
      delivery_id TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('pending', 'processing', 'completed', 'failed', 'dead')),
      token TEXT NOT NULL,
      settled_by TEXT,
      fence INTEGER NOT NULL,
      attempt INTEGER NOT NULL,
      until_at INTEGER NOT NULL,
      purge_at INTEGER,
      payload_until_at INTEGER,
      unfinished_retention INTEGER NOT NULL,
      has_payload INTEGER NOT NULL,
      fingerprint TEXT,
      event TEXT,
      action TEXT,
      code TEXT,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      line TEXT,
      place INTEGER,
      due_at INTEGER GENERATED ALWAYS AS (
        CASE WHEN has_payload AND line IS NULL AND state IN ('pending', 'processing', 'failed') THEN until_at END
      ) VIRTUAL,
      UNIQUE (provider, endpoint, delivery_id)
    );
    CREATE TABLE ${contents} (
      id INTEGER PRIMARY KEY,
      result BLOB,
      headers TEXT,
      body BLOB
    );
    CREATE TABLE ${lines} (
      line TEXT PRIMARY KEY,
      due_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE ${attempts} (
      id INTEGER PRIMARY KEY,
      log TEXT NOT NULL
    );
    CREATE TABLE ${latest} (
      entity TEXT PRIMARY KEY,
      occurred_at INTEGER NOT NULL,
      purge_at INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX "${name}_lines_due" ON ${lines} (due_at);
    CREATE INDEX "${name}_latest_purge" ON ${latest} (purge_at);
    CREATE INDEX "${name}_head" ON ${records} (line, place) WHERE line IS NOT NULL AND state <> 'dead';
    CREATE INDEX "${name}_held" ON ${records} (line, until_at) WHERE line IS NOT NULL AND state = 'processing';
    CREATE INDEX "${name}_dead" ON ${records} (line, place) WHERE line IS NOT NULL AND state = 'dead';
    CREATE INDEX "${name}_due" ON ${records} (due_at) WHERE due_at IS NOT NULL;
    CREATE INDEX "${name}_purge" ON ${records} (purge_at) WHERE purge_at IS NOT NULL;
    CREATE INDEX "${name}_payload_until" ON ${records} (payload_until_at) WHERE payload_until_at IS NOT NULL;
    CREATE INDEX "${name}_open" ON ${records} (state) WHERE state <> 'completed';
    CREATE TRIGGER "${name}_removed" AFTER DELETE ON ${records} BEGIN
      DELETE FROM ${contents} WHERE id = old.id;
      DELETE FROM ${attempts} WHERE id = old.id;
    END;
    CREATE TRIGGER "${name}_entered" AFTER INSERT ON ${records} WHEN new.line IS NOT NULL BEGIN
      INSERT INTO ${lines} (line, due_at) VALUES (new.line, new.updated_at) ON CONFLICT (line) DO NOTHING;
    END;
    CREATE TRIGGER "${name}_joined" AFTER UPDATE OF line ON ${records} WHEN old.line IS NULL AND new.line IS NOT NULL BEGIN
      INSERT INTO ${lines} (line, due_at) VALUES (new.line, new.updated_at) ON CONFLICT (line) DO NOTHING;
    END;
    CREATE TRIGGER "${name}_moved" AFTER UPDATE OF state ON ${records} WHEN old.line IS NOT NULL BEGIN
      INSERT INTO ${lines} (line, due_at) VALUES (old.line, new.updated_at)
      ON CONFLICT (line) DO UPDATE SET due_at = excluded.due_at;
    END;
    CREATE TRIGGER "${name}_left" AFTER DELETE ON ${records} WHEN old.line IS NOT NULL BEGIN
      UPDATE ${lines} SET due_at = min(due_at, old.updated_at) WHERE line = old.line;
    END;
    CREATE TRIGGER "${name}_shortened" AFTER UPDATE OF until_at ON ${records}
    WHEN old.line IS NOT NULL AND new.until_at < old.until_at BEGIN
      UPDATE ${lines} SET due_at = min(due_at, new.until_at) WHERE line = old.line;
    END;
  `
}

/** Creates or migrates the schema in one transaction. Safe from several processes at once; idempotent. */
export function setUpSchema(connection: Connection, tables: Tables): void {
  // Read first: a schema that is there needs no write lock, so a busy file does not hold up a start.
  if (versionOf(connection, tables) === schemaVersion) return
  inWriteTransaction(connection, () => {
    const version = versionOf(connection, tables)
    if (version === schemaVersion) return
    connection.run(tableScript(tables))
    connection.rows(
      statement(
        `INSERT INTO ${tables.meta} (only, schema_version, store_id, last_fence, last_place)
         VALUES (1, :version, :storeId, 0, 0)`,
      ),
      { version: schemaVersion, storeId: crypto.randomUUID() },
    )
  })
}

function versionOf(connection: Connection, tables: Tables): number | undefined {
  const found = connection.rows(
    statement(
      `SELECT name FROM sqlite_master WHERE type = 'table' AND name IN (:records, :meta) ORDER BY name`,
    ),
    { records: tables.name, meta: `${tables.name}_meta` },
  )
  if (found.length === 0) return undefined
  const row =
    found.length === 2
      ? connection.rows(statement(`SELECT schema_version FROM ${tables.meta}`), {})[0]
      : undefined
  if (row === undefined) {
    throw new WebhookInboxError(
      'ERR_STORE_SETUP',
      `The database has a table "${tables.name}" that is not this store's. Choose another name: sqliteStore({ table: 'my_inbox', … }).`,
    )
  }
  const version = integer(row, 'schema_version')
  if (version <= schemaVersion) return version
  throw new WebhookInboxError(
    'ERR_STORE_SETUP',
    `The tables of "${tables.name}" have schema version ${version}, this package knows ${schemaVersion}: update @webhook-inbox/sqlite in this process.`,
  )
}
