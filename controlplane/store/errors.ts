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
/** Of them: a number, or a time, that the type has no room for. */
const RANGE_STATES: ReadonlySet<string> = new Set(['22003', '22008']);

const codeOf = (error: unknown): string | undefined => {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined;
  return typeof code === 'string' ? code : undefined;
};

/** SQLSTATE of an error of Postgres, or of the one that it was made from: five characters, or undefined. */
export const sqlState = (error: unknown): string | undefined => {
  for (let at = error; at instanceof Error; at = at.cause) {
    const code = codeOf(at);
    if (code !== undefined && /^[0-9A-Z]{5}$/.test(code) && !SOCKET_CODE.test(code)) return code;
  }
  return undefined;
};

/** Whether the statement itself is at fault: a value that cannot be stored, or a broken constraint. */
export const isDataError = (error: unknown): boolean => /^2[23]/.test(sqlState(error) ?? '');

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
    const message = RANGE_STATES.has(state)
      ? 'a number or a time is out of the range that can be stored'
      : 'a value holds characters that cannot be stored';
    return new InvalidError('invalid_request', message, { cause: error });
  }
  return error;
};

const unavailable = (cause: Error): UnavailableError =>
  new UnavailableError('database_unavailable', 'the database does not answer; try again', {
    cause,
    retryAfterMs: 1_000,
  });
