// Turns errors of Postgres and of the connection into ours, by SQLSTATE and system code, never by message text.
// Must not know any table.
import { BeeuniError, InvalidError, UnavailableError } from '#base/errors.ts';

/** Classes of SQLSTATE that mean "the server or the way to it is unwell": wait and try again. */
const UNAVAILABLE_CLASSES: ReadonlySet<string> = new Set(['08', '53', '55', '57', '58']);
/** Single states: serialization failure, deadlock, read-only server, wrong password or role while it is set up. */
const UNAVAILABLE_STATES: ReadonlySet<string> = new Set(['40001', '40P01', '25006', '28P01', '28000', '3D000']);
/** Codes of sockets. */
const SOCKET_CODE = /^(E(CONN|PIPE|TIMEDOUT|HOST|NET|NOENT|ADDR|AI_)|ENOTFOUND)/;
/** Class 22 is a value that the column type cannot hold: the caller sent it. */
const DATA_CLASS = '22';

const codeOf = (error: unknown): string | undefined => {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined;
  return typeof code === 'string' ? code : undefined;
};

/** SQLSTATE of an error of Postgres: five characters, or undefined. */
export const sqlState = (error: unknown): string | undefined => {
  const code = codeOf(error) ?? codeOf(error instanceof Error ? error.cause : undefined);
  return code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !SOCKET_CODE.test(code) ? code : undefined;
};

/** Whether a unique constraint was broken: by name if one is given. */
export const isUniqueViolation = (error: unknown, constraint?: string): boolean => {
  if (sqlState(error) !== '23505') return false;
  const source = (codeOf(error) === '23505' ? error : (error as Error).cause) as { constraint?: string };
  return constraint === undefined || source.constraint === constraint;
};

/** Whether the statement holds a value that the database cannot store. */
export const isDataError = (error: unknown): boolean => sqlState(error)?.startsWith(DATA_CLASS) ?? false;

/**
 * The error as one of ours: `database_unavailable` when waiting helps, `invalid_request` for a value that cannot be
 * stored, else the error itself, which is a bug. Only for what a call of pg threw: its own errors about lost
 * connections carry no code at all.
 */
export const translateDatabaseError = (error: unknown): unknown => {
  if (error instanceof BeeuniError || !(error instanceof Error)) return error;
  const state = sqlState(error);
  if (state === undefined) {
    const code = codeOf(error);
    const lost =
      code === undefined ? !(error instanceof TypeError || error instanceof RangeError) : SOCKET_CODE.test(code);
    return lost ? unavailable(error) : error;
  }
  if (UNAVAILABLE_STATES.has(state) || UNAVAILABLE_CLASSES.has(state.slice(0, 2))) return unavailable(error);
  if (state.startsWith(DATA_CLASS)) {
    return new InvalidError('invalid_request', 'a value holds characters that cannot be stored', { cause: error });
  }
  return error;
};

const unavailable = (cause: Error): UnavailableError =>
  new UnavailableError('database_unavailable', 'the database does not answer; try again', {
    cause,
    retryAfterMs: 1_000,
  });
