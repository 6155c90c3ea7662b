// Words model errors for harnesses that decide by text whether to try again: a final error is a 4xx whose body holds no
// digit, no id and none of the words that start a retry; a retryable one carries a bounded wait.
// Pure. Must not know sockets. Source: harness-runtimes §2.8, known-bugs K6 to K9, 20-control-plane §5.
import { retryAfterMs } from '#base/retry-after.ts';

/** Longest wait that a harness is told. Units: seconds. Source: house brief, known-bugs K6. */
export const MAX_RETRY_AFTER_SECONDS = 30;

/** Wait of an answer that names none. Units: milliseconds. */
const DEFAULT_WAIT_MS = 2_000;

/** A failed answer as the gateway gave it. */
export type UpstreamFailure = Readonly<{ status: number; body: string; retryAfter: string | undefined }>;

/** What the harness gets. `code` is also in the body. */
export type WordedError = Readonly<{
  status: number;
  code: string;
  message: string;
  type: string;
  retryAfterSeconds: number | undefined;
}>;

type Wording = Readonly<{ status: number; message: string; type: string }>;

/** Final errors by code. The texts avoid what OpenCode's and Pi's retry rules look for, such as numbers and "rate limit". */
const FINAL: Readonly<Record<string, Wording>> = {
  budget_reached: {
    status: 402,
    message: 'the budget of this session or project is used up',
    type: 'invalid_request_error',
  },
  unknown_model: { status: 404, message: 'no registered provider offers this model', type: 'invalid_request_error' },
  model_disabled: { status: 403, message: 'the model is disabled', type: 'invalid_request_error' },
  model_not_allowed: { status: 403, message: 'the project does not allow this model', type: 'invalid_request_error' },
  provider_disabled: { status: 403, message: 'the provider of the model is disabled', type: 'invalid_request_error' },
  request_too_large: {
    status: 413,
    message: 'the request is above the size ceiling of this session',
    type: 'invalid_request_error',
  },
  body_too_large: {
    status: 413,
    message: 'the request is above the size ceiling of this session',
    type: 'invalid_request_error',
  },
  context_length_exceeded: {
    status: 400,
    message: 'the request exceeds the maximum context length of the model',
    type: 'invalid_request_error',
  },
  provider_auth_failed: { status: 401, message: 'the provider refused its key', type: 'authentication_error' },
  invalid_api_key: { status: 401, message: 'the provider refused its key', type: 'authentication_error' },
  unauthenticated: { status: 401, message: 'the session may no longer call models', type: 'authentication_error' },
  superseded: { status: 401, message: 'the session has moved to another sandbox', type: 'authentication_error' },
};

/** What `budget_held` means: no rate limit of a provider, and yet worth another call. */
const HELD = 'the rest of the budget is set aside for calls that run; try again later';

const RETRYABLE_CODES: ReadonlySet<string> = new Set(['rate_limited', 'upstream_busy', 'too_many_streams']);

const MEANING: Readonly<Record<number, Wording>> = {
  401: { status: 401, message: 'the provider refused its key', type: 'authentication_error' },
  402: { status: 402, message: 'the account of the provider has no balance left', type: 'invalid_request_error' },
  403: { status: 403, message: 'the provider does not allow this request', type: 'invalid_request_error' },
  404: { status: 404, message: 'the provider knows no such model or route', type: 'invalid_request_error' },
  413: { status: 413, message: 'the request is too large', type: 'invalid_request_error' },
};

/** Code, message and type of an OpenAI-shaped (or our) error body; empty for anything else. */
const readBody = (body: string): Readonly<{ code: string; message: string }> => {
  try {
    const parsed: unknown = JSON.parse(body);
    const error = typeof parsed === 'object' && parsed !== null && 'error' in parsed ? parsed.error : undefined;
    if (typeof error !== 'object' || error === null) return { code: '', message: '' };
    const { code, message } = error as { code?: unknown; message?: unknown };
    return { code: typeof code === 'string' ? code : '', message: typeof message === 'string' ? message : '' };
  } catch {
    return { code: '', message: '' };
  }
};

const RETRY_WORDS =
  /rate.?limit|too many requests|server.?error|internal error|overloaded|unavailable|try again|time.?out|timed out|exhausted|capacity/i;

/** A foreign text that is safe to show as final: without digits, ids and retry words; undefined when nothing is left. */
const harmless = (text: string): string | undefined => {
  const short = text
    .slice(0, 300)
    .replace(/\S*\d\S*/g, '…')
    .replace(/\s+/g, ' ')
    .trim();
  return short === '' || RETRY_WORDS.test(short) ? undefined : short;
};

const waitOf = (retryAfter: string | undefined): number => {
  const seconds = (retryAfterMs(retryAfter) ?? DEFAULT_WAIT_MS) / 1_000;
  return Math.min(Math.max(Math.ceil(seconds), 1), MAX_RETRY_AFTER_SECONDS);
};

/** The error as the harness may see it. Source: harness-runtimes §2.8. */
export const wordError = (failure: UpstreamFailure): WordedError => {
  const { code, message } = readBody(failure.body);
  const final = Object.hasOwn(FINAL, code) ? FINAL[code] : undefined;
  if (final !== undefined) {
    // Only the gateway knows which limit it was, and says it in words that start no retry.
    const told = code === 'budget_reached' ? harmless(message) : undefined;
    return { ...final, message: told ?? final.message, code, retryAfterSeconds: undefined };
  }
  if (failure.status === 429 || RETRYABLE_CODES.has(code)) {
    return {
      status: 429,
      code: code === '' ? 'rate_limited' : code,
      message: code === 'budget_held' ? HELD : 'rate limit reached, try again later',
      type: 'rate_limit_error',
      retryAfterSeconds: waitOf(failure.retryAfter),
    };
  }
  if (failure.status >= 500 || failure.status === 408) {
    return {
      status: 503,
      code: code === '' ? 'provider_failed' : code,
      message: 'the model service is unavailable, try again later',
      type: 'server_error',
      retryAfterSeconds: waitOf(failure.retryAfter),
    };
  }
  const meaning = MEANING[failure.status];
  return {
    status: meaning?.status ?? 400,
    code: code === '' || /\d/.test(code) ? 'invalid_request' : code,
    message: harmless(message) ?? meaning?.message ?? 'the provider refused the request',
    type: meaning?.type ?? 'invalid_request_error',
    retryAfterSeconds: undefined,
  };
};

/** The body of a worded error in OpenAI's shape. */
export const errorBody = (error: WordedError): string =>
  JSON.stringify({ error: { message: error.message, type: error.type, param: null, code: error.code } });
