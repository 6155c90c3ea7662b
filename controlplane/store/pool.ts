// The pool of connections as a Database: bounded size, time limits, errors of ours, transactions.
// Must not know any table.
import pg from 'pg';
import { translateDatabaseError } from './errors.ts';
import type { Database, Query, Statement } from './statement.ts';

/** How to reach Postgres and how much of it to use. */
export type PoolOptions = Readonly<{
  /** `postgres://…`; a Unix socket as `?host=/directory`. */
  databaseUrl: string;
  /** Connections at most. Bounds: 1 to 500. */
  size: number;
  /** Longest wait for a free connection, and for a new one. */
  connectTimeoutMs: number;
  /** Longest statement; the server cancels it. */
  statementTimeoutMs: number;
  applicationName: string;
  /** Told about connections that break while nobody uses them. */
  onIdleError: (error: Error) => void;
}>;

/** A Database with the life of its pool. */
export type Pool = Database &
  Readonly<{
    /** Closes every connection after its work. Later calls fail. */
    close: () => Promise<void>;
    /** Figures for metrics: connections in use, idle ones, callers that wait. */
    usage: () => Readonly<{ active: number; idle: number; waiting: number }>;
  }>;

/** Defaults of the control plane. */
export const POOL_DEFAULTS = { size: 16, connectTimeoutMs: 5_000, statementTimeoutMs: 15_000 } as const;

const TIMESTAMPTZ = 1184;
const INT8 = 20;
const JSON_TYPES: ReadonlySet<number> = new Set([114, 3802]);

const parsers = new Map<number, (text: string) => unknown>([
  [TIMESTAMPTZ, (text) => new Date(text).toISOString()],
  [INT8, Number],
]);

/** How values come back: times as RFC 3339 in UTC, `bigint` as number (ours stay below 2^53), JSON parsed. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') => {
    const own = format === 'binary' ? undefined : parsers.get(oid);
    if (own !== undefined) return own;
    if (JSON_TYPES.has(oid)) return (text: string) => JSON.parse(text) as unknown;
    return format === 'binary' ? pg.types.getTypeParser(oid, 'binary') : pg.types.getTypeParser(oid, 'text');
  }) as pg.CustomTypesConfig['getTypeParser'],
};

/** Settings of a single connection, pooled or not. */
export const clientConfig = (
  options: Pick<PoolOptions, 'databaseUrl' | 'connectTimeoutMs' | 'statementTimeoutMs' | 'applicationName'>,
): pg.ClientConfig => ({
  connectionString: options.databaseUrl,
  connectionTimeoutMillis: options.connectTimeoutMs,
  statement_timeout: options.statementTimeoutMs,
  query_timeout: options.statementTimeoutMs + 5_000,
  idle_in_transaction_session_timeout: options.statementTimeoutMs * 2,
  application_name: options.applicationName,
  keepAlive: true,
  types,
});

const queryOf =
  (client: pg.ClientBase): Query =>
  async <Row>(statement: Statement<Row>) => {
    try {
      const { rows } = await client.query({ ...statement, values: statement.values as unknown[] });
      return rows as Row[];
    } catch (error) {
      throw translateDatabaseError(error);
    }
  };

/** Opens nothing until the first statement. Errors of its functions: UnavailableError `database_unavailable`, InvalidError for a value that cannot be stored. */
export const createPool = (options: PoolOptions): Pool => {
  const pool = new pg.Pool({ ...clientConfig(options), max: options.size, idleTimeoutMillis: 30_000 });
  pool.on('error', options.onIdleError);

  const withClient = async <T>(run: (client: pg.PoolClient) => Promise<T>): Promise<T> => {
    let client: pg.PoolClient;
    try {
      client = await pool.connect();
    } catch (error) {
      throw translateDatabaseError(error);
    }
    let broken: Error | undefined;
    const onError = (error: Error) => {
      broken = error;
    };
    client.on('error', onError);
    try {
      return await run(client);
    } finally {
      client.removeListener('error', onError);
      client.release(broken);
    }
  };

  return {
    query: (statement) => withClient((client) => queryOf(client)(statement)),
    withTransaction: (run) => withClient((client) => inTransaction(client, run)),
    close: () => pool.end(),
    usage: () => ({
      active: pool.totalCount - pool.idleCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    }),
  };
};

/** Commits when `run` resolves, else rolls back. A failed roll-back means a lost connection, and then nothing was committed. */
export const inTransaction = async <T>(client: pg.ClientBase, run: (query: Query) => Promise<T>): Promise<T> => {
  const query = queryOf(client);
  await query({ text: 'begin', values: [] });
  try {
    const result = await run(query);
    await query({ text: 'commit', values: [] });
    return result;
  } catch (error) {
    await query({ text: 'rollback', values: [] }).catch(() => undefined);
    throw error;
  }
};
