/**
 * The functions of the schema: claim, renew, complete, fail and release, each for a batch of entries in one call.
 *
 * They are in the database because it then keeps their plans: planning these statements anew takes it ten times as
 * long as running them. Each call is one statement of the client and one transaction. The names carry the version of
 * the schema that brought them, so that processes of two versions can work side by side.
 *
 * The array parameters have one element for each entry. Tables are read through their indexes alone: a plan that was
 * made when the tables were empty stays right when they have grown. (Before PostgreSQL 18 a plan type that is off counts
 * as very dear where there is no other, and dear plans are compiled: hence `jit = off`.)
 */
import type { Tables } from './schema.ts'
import { addAttempts, clock, digestOf, keyOf, lostOwner } from './sql.ts'

/** A column of the entries: its name and its type. The parameter is an array with the name in the plural. */
export type Parameter = readonly [name: string, type: string]

const keyParameters: readonly Parameter[] = [
  ['provider', 'text'],
  ['endpoint', 'text'],
  ['delivery_id', 'text'],
]

const holdParameters: readonly Parameter[] = [
  ...keyParameters,
  ['token', 'bigint'],
  ['fence', 'bigint'],
]

const bytesParameters: readonly Parameter[] = [
  ['bytes_start', 'integer'],
  ['bytes_length', 'integer'],
]

export type FunctionName = 'claim' | 'renew' | 'complete' | 'fail' | 'release'

/** How a delivery is taken: one call, without arrays but for the tokens. */
export function takeText(tables: Tables): string {
  return `SELECT * FROM ${nameOf(tables, 'take')}(
    $1::text::integer, $2::text::bigint, $3::text::bigint[], $4::text::integer, $5::text::integer, $6::text::boolean
  )`
}

/** The arrays of each function, in order; behind them come the bytes of all entries and, but for claims, `waits`. */
export const parametersOf: Readonly<Record<FunctionName, readonly Parameter[]>> = {
  claim: [
    ...keyParameters,
    ['token', 'bigint'],
    ['lease', 'bigint'],
    ['flags', 'integer'],
    ['keep_s', 'integer'],
    ['dead_keep_s', 'integer'],
    ['max_attempts', 'integer'],
    ['fingerprint', 'text'],
    ['event', 'text'],
    ['action', 'text'],
    ['headers', 'text'],
    ['line', 'text'],
    ['rank', 'integer'],
    ...bytesParameters,
  ],
  renew: [...holdParameters, ['lease', 'bigint']],
  complete: [
    ...holdParameters,
    ['keep_s', 'integer'],
    ['payload_keep', 'bigint'],
    ...bytesParameters,
  ],
  fail: [
    ...holdParameters,
    ['keep_s', 'integer'],
    ['retry_in', 'bigint'],
    ['code', 'text'],
    ['duration', 'bigint'],
    ['headers', 'text'],
    ...bytesParameters,
  ],
  release: holdParameters,
}

/** Bits of the parameter `flags` of a claim. */
export const flag = { queued: 1, respectsBackoff: 2, redeliversDead: 4, isUuid: 8 } as const

function nameOf({ schemaName, tableName }: Tables, name: FunctionName | 'take'): string {
  return `"${schemaName}"."${tableName}_${name}_1"`
}

/** The statement that calls a function. Parameters are texts, so that every driver passes them on unchanged. */
export function callText(tables: Tables, name: FunctionName): string {
  const arrays = parametersOf[name].map(([, type], index) => `$${index + 1}::text::${type}[]`)
  const bytes = hasBytes(name) ? [`$${arrays.length + 1}::bytea`] : []
  const waits = name === 'claim' ? [] : [`$${arrays.length + bytes.length + 1}::text::boolean`]
  return `SELECT * FROM ${nameOf(tables, name)}(${[...arrays, ...bytes, ...waits].join(', ')})`
}

function hasBytes(name: FunctionName): boolean {
  return parametersOf[name].some(([column]) => column === 'bytes_length')
}

/** The statements that create the functions. */
export function functionTexts(tables: Tables): readonly string[] {
  return [
    claimFunction(tables),
    settleFunction(tables, 'renew', {
      // Nothing that an index holds changes for records without bytes, so that a renewal stays within its page.
      set: `until_at = ask.now + ask.lease,
        due_at = CASE WHEN row.due_at IS NOT NULL THEN ask.now + ask.lease END`,
    }),
    settleFunction(tables, 'complete', {
      letter: 'c',
      // The fence alone tells who completed it: no other claim of this key has had it, or will.
      set: `state = 'c', token = NULL, settled_by = NULL, code = NULL, updated_at = ask.now, until_at = NULL, due_at = NULL,
        line = NULL, place = NULL, keep_s = ask.keep_s, has_payload = row.has_payload AND ask.payload_keep IS NOT NULL,
        has_result = ask.bytes_length IS NOT NULL`,
      before: completeContents(tables),
    }),
    settleFunction(tables, 'fail', {
      letter: 'f',
      set: `state = CASE WHEN ask.retry_in IS NULL THEN 'd' ELSE 'f' END, settled_by = 'f', code = ask.code,
        updated_at = ask.now, until_at = ask.now + ask.retry_in,
        due_at = CASE WHEN row.has_payload OR ask.bytes_length IS NOT NULL THEN ask.now + ask.retry_in END,
        keep_s = ask.keep_s, has_payload = row.has_payload OR ask.bytes_length IS NOT NULL`,
      before: `${failContents(tables)}
        ${noteFailures(tables)}`,
    }),
    settleFunction(tables, 'release', { letter: 'r', set: giveBack }),
    takeFunction(tables),
  ]
}

/** What a release does to a record. */
export const giveBack = `state = CASE WHEN row.has_payload THEN 'p' ELSE 'f' END, settled_by = 'r',
        attempt = row.attempt - 1, updated_at = ask.now, until_at = ask.now,
        due_at = CASE WHEN row.has_payload THEN ask.now END`

// Tables are read through their indexes, and plans are kept.
const planned = `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
      SET plan_cache_mode = force_generic_plan SET jit = off`

function createFunction(
  tables: Tables,
  name: FunctionName,
  {
    declares,
    returns,
    body,
  }: { readonly declares: string; readonly returns: string; readonly body: string },
): string {
  const arrays = parametersOf[name].map(([column, type]) => `${plural(column)} ${type}[]`)
  const bytes = hasBytes(name) ? ['bytes bytea'] : []
  const waits = name === 'claim' ? [] : ['waits boolean']
  return `CREATE FUNCTION ${nameOf(tables, name)}(
        ${[...arrays, ...bytes, ...waits].join(', ')}
      ) RETURNS TABLE (${returns}) LANGUAGE plpgsql
      ${planned} AS $function$
      #variable_conflict use_column
      DECLARE
        keys uuid[];
        at bigint := (SELECT now FROM ${clock} AS clock);
        ${declares}
      BEGIN
        keys := ARRAY(
          SELECT ${keyOf('ask')}
          FROM unnest(providers, endpoints, delivery_ids) WITH ORDINALITY AS ask (provider, endpoint, delivery_id, n)
          ORDER BY ask.n
        );
        ${body}
      END $function$`
}

function plural(column: string): string {
  return `${column}s`
}

/** The entries of a call as rows: `n` from 1 on, `key`, `now` and the parameters. */
function asked(name: FunctionName): string {
  const columns = parametersOf[name].map(([column]) => column)
  return `(SELECT at AS now, entry.* FROM unnest(keys, ${columns.map(plural).join(', ')}) WITH ORDINALITY
          AS entry (key, ${columns.join(', ')}, n))`
}

function has(alias: string, name: keyof typeof flag): string {
  return `(${alias}.flags & ${flag[name]}) <> 0`
}

/** Whether the run is a worker's: of queued work, and of what waits in a line, which an inline claim would overtake. */
const leavesTheRun = `(${has('ask', 'queued')} OR row.line IS NOT NULL)`

/**
 * What a claim does to a record: `new` (its retention is over: begin again), `own` (its holder asks again), `grant`,
 * `bury` (no attempts left), `store` (a queued copy brings bytes, or opens a dead record), `fill` (the first
 * fingerprint comes late); NULL: nothing, and the answer is what is there.
 */
const move = `CASE
            WHEN row.due_at IS NULL AND row.updated_at + row.keep_s * 1000::bigint <= ask.now
              AND NOT (row.state = 'r' AND row.until_at > ask.now) THEN 'new'
            WHEN row.state = 'c' THEN NULL
            WHEN row.state = 'r' AND row.token = ask.token THEN 'own'
            WHEN ${leavesTheRun} AND row.state = 'd' AND ${has('ask', 'redeliversDead')} THEN 'store'
            WHEN ${has('ask', 'queued')} AND row.state <> 'd' AND NOT row.has_payload AND ask.bytes_length IS NOT NULL
              THEN 'store'
            WHEN row.state <> 'd' OR ${has('ask', 'redeliversDead')} THEN CASE
              WHEN ${leavesTheRun} OR row.state = 'r' AND row.until_at > ask.now THEN NULL
              WHEN row.state NOT IN ('p', 'd') AND row.attempt >= ask.max_attempts THEN 'bury'
              WHEN row.state = 'f' AND ${has('ask', 'respectsBackoff')} AND row.until_at > ask.now THEN NULL
              ELSE 'grant'
            END
          END`
const moveOrFill = `coalesce(${move}, CASE
            WHEN row.state <> 'c' AND row.fingerprint IS NULL AND ask.fingerprint IS NOT NULL THEN 'fill'
          END)`

/**
 * Three steps: records that stay as they are, records that are not there, records that the claim changes. It ends as
 * soon as every entry has its answer. An entry whose record is locked by another transaction, or that lost a race,
 * gets none.
 */
function claimFunction(tables: Tables): string {
  const { records, contents, attempts, fences } = tables
  const ask = asked('claim')
  const isQueued = has('ask', 'queued')
  const grants = `(ask.move IN ('own', 'grant') OR ask.move = 'new' AND NOT ${isQueued})`
  const opensDead = `(ask.move = 'store' AND row.state = 'd')`
  const begins = `(ask.move IN ('new', 'grant', 'bury') OR ${opensDead})`
  const untilAt = `CASE
              WHEN ${grants} THEN ask.now + ask.lease
              WHEN ask.move = 'bury' THEN NULL
              WHEN ask.move = 'new' OR ${opensDead} THEN ask.now
              ELSE row.until_at
            END`
  const hasPayload = `CASE
              WHEN ask.move = 'new' THEN ask.bytes_length IS NOT NULL
              WHEN ask.move = 'store' THEN row.has_payload OR ask.bytes_length IS NOT NULL
              ELSE row.has_payload
            END`
  const piece = 'substr(bytes, ask.bytes_start, ask.bytes_length)'
  const firstUntilAt = `CASE WHEN ${isQueued} THEN ask.now ELSE ask.now + ask.lease END`
  // The one that the record has, when it is not the one that was asked with.
  const otherFingerprint = `CASE WHEN encode(row.fingerprint, 'hex') <> ask.fingerprint OR ask.fingerprint IS NULL
            THEN encode(row.fingerprint, 'hex') END`
  // Mostly NULLs, and NULL costs nothing on its way: `at` is the time of completion or what is left of a lease or a wait.
  const state = `row.state::text, CASE WHEN row.state = 'c' THEN row.updated_at ELSE row.until_at - at END,
          CASE WHEN row.state = 'r' THEN row.token::text END, row.has_payload`
  const save = `ON CONFLICT (key) DO UPDATE SET
            headers = excluded.headers, body = excluded.body, result = NULL, payload_until = NULL`
  return createFunction(tables, 'claim', {
    returns: `n bigint, move text, fence bigint, attempt integer, fingerprint text, result bytea, state text, moment bigint,
        holder text, has_payload boolean`,
    declares: `answered integer;
        more integer;
        named uuid[];
        kept uuid[];`,
    body: `RETURN QUERY SELECT ask.n, CASE WHEN row.line IS NOT NULL THEN 'wait' END, NULL::bigint, NULL::integer, ${otherFingerprint},
          CASE WHEN row.has_result AND row.state = 'c' THEN (
            SELECT content.result FROM ${contents} AS content WHERE content.key = row.key
          ) END, ${state}
        FROM ${ask} AS ask JOIN ${records} AS row ON row.key = ask.key
        WHERE ${moveOrFill} IS NULL;
        GET DIAGNOSTICS answered = ROW_COUNT;
        IF answered = cardinality(keys) THEN RETURN; END IF;

        ${holdLines(tables)}
        RETURN QUERY WITH missing AS MATERIALIZED (
          SELECT ask.* FROM ${ask} AS ask
          WHERE NOT EXISTS (SELECT FROM ${records} AS row WHERE row.key = ask.key)
        ), ${placedIn(fences, 'missing')}, inserted AS (
          INSERT INTO ${records} AS row (
            fence, token, created_at, updated_at, until_at, due_at, keep_s, attempt, state, has_payload, has_result,
            key, delivery_uuid, line, place, fingerprint, provider, endpoint, delivery_id, event, action
          )
          SELECT
            CASE WHEN ${isQueued} THEN 0 ELSE nextval('${fences}') END, ask.token, ask.now, ask.now,
            ${firstUntilAt}, CASE WHEN ask.bytes_length IS NOT NULL THEN ${firstUntilAt} END, ask.keep_s,
            CASE WHEN ${isQueued} THEN 0 ELSE 1 END, CASE WHEN ${isQueued} THEN 'p' ELSE 'r' END,
            ask.bytes_length IS NOT NULL, false, ask.key, CASE WHEN ${has('ask', 'isUuid')} THEN ask.delivery_id::uuid END,
            ${lineOf}, placed.place, decode(ask.fingerprint, 'hex'), ask.provider, ask.endpoint,
            CASE WHEN NOT ${has('ask', 'isUuid')} THEN ask.delivery_id END, ask.event, ask.action
          FROM missing AS ask LEFT JOIN placed ON placed.key = ask.key
          ORDER BY ask.key
          ON CONFLICT (key) DO NOTHING
          RETURNING row.*
        ), stored AS (
          INSERT INTO ${contents} (key, headers, body)
          SELECT ask.key, ask.headers, ${piece}
          FROM inserted AS row JOIN missing AS ask ON ask.key = row.key
          WHERE bytes IS NOT NULL AND ask.bytes_length IS NOT NULL
          ${save}
        ) SELECT array_position(keys, row.key)::bigint, 'new', row.fence, row.attempt::integer, NULL, NULL::bytea, ${state}
        FROM inserted AS row;
        GET DIAGNOSTICS more = ROW_COUNT;
        answered := answered + more;
        IF answered = cardinality(keys) THEN RETURN; END IF;

        RETURN QUERY WITH locked AS MATERIALIZED (
          SELECT ask.*, row.has_payload AS had_payload, row.has_result AS had_result, row.state AS old_state,
            row.attempt AS attempt, row.until_at, ${moveOrFill} AS move
          FROM ${ask} AS ask JOIN ${records} AS row ON row.key = ask.key
          WHERE ${moveOrFill} IS NOT NULL
            -- Not what this call has just inserted.
            AND NOT (row.created_at = at AND row.token = ask.token)
          ORDER BY row.key
          FOR UPDATE OF row SKIP LOCKED
        ), ${placedIn(fences, 'locked')}, lost AS (
          ${addAttempts(
            attempts,
            `SELECT ask.key, ${lostOwner('ask')} AS entry FROM locked AS ask
            WHERE ask.old_state = 'r' AND ask.move IN ('grant', 'bury')`,
          )}
        ), forgotten AS (
          DELETE FROM ${attempts} AS kept USING locked AS ask WHERE kept.key = ask.key AND ask.move = 'new'
        ), cleared AS (
          DELETE FROM ${contents} AS content USING locked AS ask
          WHERE content.key = ask.key AND ask.move = 'new' AND (ask.had_payload OR ask.had_result)
            AND ask.bytes_length IS NULL
        ), stored AS (
          INSERT INTO ${contents} (key, headers, body)
          SELECT ask.key, ask.headers, ${piece} FROM locked AS ask
          WHERE ask.bytes_length IS NOT NULL AND (ask.move = 'new' OR ask.move = 'store' AND NOT ask.had_payload)
          ${save}
        ), changed AS (
          UPDATE ${records} AS row SET
            state = CASE
              WHEN ${grants} THEN 'r'
              WHEN ask.move = 'new' THEN 'p'
              WHEN ask.move = 'bury' THEN 'd'
              WHEN ${opensDead} THEN 'f'
              ELSE row.state
            END,
            settled_by = CASE WHEN ask.move IN ('new', 'grant', 'bury') THEN NULL ELSE row.settled_by END,
            token = CASE WHEN ${grants} THEN ask.token ELSE row.token END,
            fence = CASE
              WHEN ${grants} AND ask.move <> 'own' THEN greatest(row.fence + 1, nextval('${fences}'))
              ELSE row.fence
            END,
            attempt = CASE
              WHEN ask.move = 'new' THEN CASE WHEN ${isQueued} THEN 0 ELSE 1 END
              WHEN ask.move = 'grant' THEN CASE WHEN row.state = 'd' THEN 1 ELSE least(row.attempt + 1, 32767) END
              WHEN ${opensDead} THEN 0
              ELSE row.attempt
            END,
            created_at = CASE WHEN ask.move = 'new' THEN ask.now ELSE row.created_at END,
            updated_at = CASE WHEN ${begins} THEN ask.now ELSE row.updated_at END,
            until_at = ${untilAt},
            due_at = CASE WHEN ${hasPayload} AND (row.state <> 'd' OR ask.move <> 'fill') THEN ${untilAt} END,
            keep_s = CASE
              WHEN ask.move = 'bury' THEN ask.dead_keep_s
              WHEN ${begins} THEN ask.keep_s
              ELSE row.keep_s
            END,
            has_payload = ${hasPayload},
            has_result = row.has_result AND ask.move <> 'new',
            fingerprint = CASE
              WHEN ask.move = 'new' OR row.fingerprint IS NULL THEN decode(ask.fingerprint, 'hex')
              ELSE row.fingerprint
            END,
            line = CASE
              WHEN ask.move = 'new' THEN ${lineOf}
              WHEN ask.move = 'store' AND NOT ask.had_payload THEN ${lineOf}
              ELSE row.line
            END,
            place = CASE
              WHEN ask.move = 'new' OR ask.move = 'store' AND NOT ask.had_payload THEN placed.place
              ELSE row.place
            END,
            event = CASE WHEN ask.move = 'new' THEN ask.event ELSE row.event END,
            action = CASE WHEN ask.move = 'new' THEN ask.action ELSE row.action END,
            code = CASE
              WHEN ask.move = 'new' THEN NULL
              WHEN ask.move = 'bury' THEN 'attempts_exhausted'
              ELSE row.code
            END
          FROM locked AS ask LEFT JOIN placed ON placed.key = ask.key WHERE row.key = ask.key
          RETURNING row.*, ask.n, ask.move, ${otherFingerprint} AS other_fingerprint
        ) SELECT row.n, row.move, row.fence, row.attempt::integer, row.other_fingerprint, NULL::bytea, ${state}
        FROM changed AS row;`,
  })
}

/** The line of an entry whose bytes are stored. */
const lineOf = `CASE WHEN ask.line IS NOT NULL AND ask.bytes_length IS NOT NULL THEN ${digestOf('ask.line')} END`

/** The places that entries of a batch get in their lines: in the order in which they came, which is not that of the keys. */
function placedIn(fences: string, entries: string): string {
  return `placed AS MATERIALIZED (
          SELECT came.key, nextval('${fences}') AS place FROM (
            SELECT ask.key FROM ${entries} AS ask WHERE ask.line IS NOT NULL AND ask.bytes_length IS NOT NULL ORDER BY ask.rank
          ) AS came
        )`
}

/**
 * Makes sure that the lines of what is about to be stored are looked at, and stay until this call commits: a taker
 * removes a line in which it finds nothing, and could not see what is being stored. This lock lets a completion in a
 * caller's transaction be, which has changed the same row.
 */
function holdLines({ records, lines }: Tables): string {
  const ask = asked('claim')
  return `IF array_remove(lines, NULL) <> '{}' OR EXISTS (
          SELECT FROM unnest(${plural('flags')}) AS ask (flags) WHERE ${has('ask', 'redeliversDead')}
        ) THEN
        named := ARRAY(
          SELECT DISTINCT coalesce(row.line, ${lineOf}) AS line FROM ${ask} AS ask LEFT JOIN ${records} AS row ON row.key = ask.key
          WHERE (ask.line IS NOT NULL OR row.line IS NOT NULL) AND (row.key IS NULL OR ${move} IS NOT NULL)
          ORDER BY line
        );
        named := array_remove(named, NULL);
        WHILE cardinality(named) > 0 LOOP
          kept := ARRAY(
            SELECT line.line FROM ${lines} AS line WHERE line.line = ANY (named) ORDER BY line.line FOR KEY SHARE
          );
          EXIT WHEN cardinality(kept) = cardinality(named);
          -- Only what is not there: beside a row that a transaction has changed, this would wait for that transaction.
          INSERT INTO ${lines} (due_at, line)
          SELECT at, wanted.line FROM unnest(named) AS wanted (line) WHERE wanted.line <> ALL (kept) ORDER BY wanted.line
          ON CONFLICT (line) DO NOTHING;
        END LOOP;
        END IF;
`
}

/** Says of the lines in `held_lines` that they have to be looked at. */
export function wakeLines({ lines }: Pick<Tables, 'lines'>): string {
  return `IF held_lines IS NOT NULL THEN
          PERFORM FROM ${lines} AS line WHERE line.line = ANY (held_lines) ORDER BY line.line FOR NO KEY UPDATE;
          UPDATE ${lines} AS line SET due_at = at WHERE line.line = ANY (held_lines);
        END IF;`
}

/**
 * Locks the records that are still held, in the order of their keys, and changes them. State, token and fence guard
 * every one, never the lease time. Without `waits` a record that another transaction has locked is passed over and
 * answered `busy`.
 */
function settleFunction(
  tables: Tables,
  name: Exclude<FunctionName, 'claim'>,
  {
    set,
    letter,
    before = '',
  }: {
    /** In it `row` is the record and `ask` the entry. */
    readonly set: string
    /** The letter by which a record tells that this very token has done it before. */
    readonly letter?: 'c' | 'f' | 'r'
    /** Statements for what lies beside the records in `held`, before these change. */
    readonly before?: string
  },
): string {
  const ask = asked(name)
  const same = 'row.key = ask.key AND row.fence = ask.fence'
  const lock = (how: string) => `SELECT
            array_agg(locked.key), bool_or(locked.has_payload),
            array_agg(DISTINCT locked.line) FILTER (WHERE locked.line IS NOT NULL)
          INTO held, any_payload, held_lines
          FROM (
            SELECT row.key, row.has_payload, row.line FROM ${ask} AS ask JOIN ${tables.records} AS row ON ${same}
            -- As text, so that the index of what is open, which also has all of these, is not asked.
            WHERE row.state::text = 'r' AND row.token = ask.token
            ORDER BY row.key
            ${how}
          ) AS locked;`
  const settled = `CASE row.state WHEN 'c' THEN 'c' ELSE row.settled_by END`
  return createFunction(tables, name, {
    returns: 'n bigint, answer text',
    declares: `held uuid[];
        any_payload boolean;
        held_lines uuid[];
        answered integer;`,
    body: `IF waits THEN
          ${lock('FOR UPDATE OF row')}
        ELSE
          ${lock('FOR UPDATE OF row SKIP LOCKED')}
        END IF;
        ${before}
        RETURN QUERY UPDATE ${tables.records} AS row SET ${set}
        FROM ${ask} AS ask WHERE row.key = ask.key AND ask.key = ANY (held)
        RETURNING ask.n, 'ok';
        GET DIAGNOSTICS answered = ROW_COUNT;
        ${name === 'renew' ? '' : wakeLines(tables)}
        IF answered = cardinality(keys) THEN RETURN; END IF;

        RETURN QUERY SELECT ask.n, CASE
            WHEN row.state = 'r' THEN 'busy'
            WHEN ${settled} = ${letter === undefined ? 'NULL' : `'${letter}'`} THEN 'already'
            ELSE 'lost'
          END
        FROM ${ask} AS ask LEFT JOIN ${tables.records} AS row ON ${same}
          AND (row.token = ask.token OR row.state = 'c')
        WHERE held IS NULL OR NOT ask.key = ANY (held);`,
  })
}

/**
 * Claims what is due: records that are in no line, then the heads of the lines that are due. Takers never wait: what
 * another transaction has locked is passed over. A line in which nothing is left is removed; the lock on it makes
 * sure that whatever is being stored for it was either seen here or makes the line anew.
 */
function takeFunction(tables: Tables): string {
  const { records, contents, lines, attempts, fences } = tables
  const isSpent = `coalesce(row.attempt >= most_attempts AND row.state <> 'p', false)`
  const took = (from: string, before: string) => `numbered AS MATERIALIZED (
          SELECT due.*, found + row_number() OVER () AS n FROM ${from} AS due
        ), lost AS (
          ${addAttempts(attempts, `SELECT due.key, ${lostOwner('due')} AS entry FROM numbered AS due WHERE due.state = 'r'`)}
        ), changed AS (
          UPDATE ${records} AS row SET
            state = CASE WHEN due.is_spent THEN 'd' ELSE 'r' END,
            settled_by = NULL,
            token = CASE WHEN due.is_spent THEN row.token ELSE tokens[due.n] END,
            fence = CASE WHEN due.is_spent THEN row.fence ELSE greatest(row.fence + 1, nextval('${fences}')) END,
            attempt = CASE WHEN due.is_spent THEN row.attempt ELSE least(row.attempt + 1, 32767) END,
            updated_at = at,
            until_at = CASE WHEN NOT due.is_spent THEN at + lease END,
            due_at = CASE WHEN NOT due.is_spent THEN at + lease END,
            keep_s = CASE WHEN due.is_spent THEN dead_keep_s ELSE row.keep_s END,
            code = CASE WHEN due.is_spent THEN 'attempts_exhausted' ELSE row.code END
          FROM numbered AS due WHERE row.key = due.key
          RETURNING row.*, due.n, due.is_spent, due.state = 'r' AS was_lost
        )${before}
        SELECT row.n, row.is_spent, row.provider, row.endpoint, coalesce(row.delivery_uuid::text, row.delivery_id),
          row.fence, row.attempt::integer, row.event, row.action, row.created_at, content.headers, content.body,
          kept.log::text, row.was_lost
        FROM changed AS row LEFT JOIN ${contents} AS content ON content.key = row.key AND NOT row.is_spent
        LEFT JOIN ${attempts} AS kept ON kept.key = row.key
        ORDER BY row.n`
  return `CREATE FUNCTION ${nameOf(tables, 'take')}(
        wanted integer, lease bigint, tokens bigint[], most_attempts integer, dead_keep_s integer, dead_blocks boolean
      ) RETURNS TABLE (
        n bigint, is_spent boolean, provider text, endpoint text, delivery_id text, fence bigint, attempt integer,
        event text, action text, created_at bigint, headers text, body bytea, log text, was_lost boolean
      ) LANGUAGE plpgsql ${planned} AS $function$
      #variable_conflict use_column
      DECLARE
        at bigint := (SELECT now FROM ${clock} AS clock);
        found integer := 0;
        picked uuid[];
      BEGIN
        RETURN QUERY WITH due AS MATERIALIZED (
          SELECT row.key, row.state, row.attempt, row.until_at, ${isSpent} AS is_spent
          FROM ${records} AS row WHERE row.due_at <= at AND row.due_at IS NOT NULL AND row.line IS NULL
          ORDER BY row.due_at LIMIT wanted
          FOR UPDATE OF row SKIP LOCKED
        ), ${took('due', '')};
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found >= wanted THEN RETURN; END IF;

        picked := ARRAY(
          SELECT line.line FROM ${lines} AS line WHERE line.due_at <= at
          ORDER BY line.due_at LIMIT wanted - found
          FOR UPDATE SKIP LOCKED
        );
        IF cardinality(picked) = 0 THEN RETURN; END IF;

        -- A new statement, which sees whatever was stored before these lines were locked.
        RETURN QUERY WITH head AS MATERIALIZED (
          SELECT line.line, held.until_at AS held_until, first.key, first.state, first.fence, first.until_at,
            dead_blocks AND EXISTS (
              SELECT FROM ${records} AS dead
              WHERE dead.line = line.line AND dead.line IS NOT NULL AND dead.state = 'd'
                AND (first.place IS NULL OR dead.place < first.place)
            ) AS is_stopped
          FROM unnest(picked) AS line (line)
          LEFT JOIN LATERAL (
            SELECT max(row.until_at) AS until_at FROM ${records} AS row
            WHERE row.line = line.line AND row.line IS NOT NULL AND row.state = 'r' AND row.until_at > at
          ) AS held ON true
          LEFT JOIN LATERAL (
            SELECT row.key, row.state, row.fence, row.until_at, row.place FROM ${records} AS row
            WHERE row.line = line.line AND row.line IS NOT NULL AND row.state <> 'd'
            ORDER BY row.place LIMIT 1
          ) AS first ON true
        ), due AS MATERIALIZED (
          SELECT row.key, row.state, row.attempt, row.until_at, ${isSpent} AS is_spent
          FROM head JOIN ${records} AS row ON row.key = head.key AND row.state = head.state AND row.fence = head.fence
          WHERE head.held_until IS NULL AND NOT head.is_stopped AND row.until_at <= at
          FOR UPDATE OF row SKIP LOCKED
        ), ${took(
          'due',
          `, moved AS (
          UPDATE ${lines} AS line SET due_at = CASE
              WHEN head.held_until IS NOT NULL THEN head.held_until
              WHEN head.is_stopped THEN at + 60000
              WHEN head.until_at > at THEN head.until_at
              WHEN due.is_spent = false THEN at + lease
              ELSE at
            END
          FROM head LEFT JOIN due ON due.key = head.key
          WHERE line.line = head.line AND (head.key IS NOT NULL OR head.is_stopped)
        ), emptied AS (
          DELETE FROM ${lines} AS line USING head
          WHERE line.line = head.line AND head.key IS NULL AND NOT head.is_stopped
        )`,
        )};
      END $function$`
}

function noteFailures({ records, attempts }: Tables): string {
  return `${addAttempts(
    attempts,
    `SELECT ask.key, jsonb_build_array(jsonb_build_array(row.attempt, ask.now, ask.duration, ask.code)) AS entry
          FROM ${asked('fail')} AS ask JOIN ${records} AS row ON row.key = ask.key WHERE ask.key = ANY (held)`,
  )};`
}

function completeContents({ records, contents }: Tables): string {
  const ask = asked('complete')
  const rows = `${ask} AS ask JOIN ${records} AS row ON row.key = ask.key`
  return `IF any_payload THEN
          DELETE FROM ${contents} AS content USING ${rows}
          WHERE content.key = ask.key AND ask.key = ANY (held) AND row.has_payload AND ask.payload_keep IS NULL;
          UPDATE ${contents} AS content SET payload_until = ask.now + ask.payload_keep FROM ${rows}
          WHERE content.key = ask.key AND ask.key = ANY (held) AND row.has_payload AND ask.payload_keep IS NOT NULL;
        END IF;
        IF bytes IS NOT NULL THEN
          INSERT INTO ${contents} (key, result)
          SELECT ask.key, substr(bytes, ask.bytes_start, ask.bytes_length) FROM ${ask} AS ask
          WHERE ask.key = ANY (held) AND ask.bytes_length IS NOT NULL
          ON CONFLICT (key) DO UPDATE SET result = excluded.result;
        END IF;`
}

// Bytes that came with the first claim are the ones that were acknowledged: a failure never replaces them.
function failContents({ records, contents }: Tables): string {
  return `IF bytes IS NOT NULL THEN
          INSERT INTO ${contents} (key, headers, body)
          SELECT ask.key, ask.headers, substr(bytes, ask.bytes_start, ask.bytes_length)
          FROM ${asked('fail')} AS ask JOIN ${records} AS row ON row.key = ask.key
          WHERE ask.key = ANY (held) AND ask.bytes_length IS NOT NULL AND NOT row.has_payload
          ON CONFLICT (key) DO UPDATE SET headers = excluded.headers, body = excluded.body;
        END IF;`
}
