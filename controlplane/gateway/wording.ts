// How the gateway words errors. Harnesses decide by the text of an error whether to call again, so a final error has a
// 4xx status and a body without digits, ids and the words that they look for; ids go into headers. Pure.
// Source: 20-control-plane §5, FC3, A142. It must not know providers or sessions.
import { retryAfterMs } from '#base/retry-after.ts';
import type { ProblemCode } from '#schema/problem.ts';
import { GATEWAY_OFF_TEXT } from '#schema/rules/effective-flags.ts';

/** An error answer of the gateway. Header names in lower case. */
export type GatewayError = Readonly<{
  status: number;
  code: ProblemCode;
  message: string;
  type: string;
  headers: Readonly<Record<string, string>>;
  /** The prompt does not fit the model: the words that harnesses compact by. */
  isOverflow?: boolean | undefined;
}>;

/** Longest wait that a retryable error asks for. Units: seconds. Source: 20-control-plane §5. */
export const MAX_RETRY_AFTER_SECONDS = 30;

/** What harnesses take as "call again", wherever it stands. */
const RETRY_WORDS =
  /rate.?limit|too many|overload|server.?error|internal.?error|service.?unavailable|try again|time(d)?.?out|terminated|network|connection|fetch failed|socket|upstream.?connect|temporar|capacity|retry|exhausted|unavailable|provider.?returned/i;

/** Whether a text may be in a final error: no digits and none of the words that make a harness call again. */
export const isFinalText = (text: string): boolean => !/\d/.test(text) && !RETRY_WORDS.test(text);

/** Codes and messages of final errors. The message says what to do; names that may hold digits are left out. */
const FINAL = {
  unknown_model: [404, 'no registered provider lists the model of this request'],
  model_disabled: [400, 'the model of this request is disabled'],
  provider_disabled: [400, 'the provider of this model is disabled'],
  model_not_allowed: [403, 'the project does not allow the model of this request'],
  request_too_large: [413, 'the request is above the request ceiling of this session; shorten the conversation'],
  body_too_large: [413, 'the request is above the size that the gateway takes'],
  invalid_json: [400, 'the body is not a JSON object that the gateway can read'],
  invalid_request: [400, 'the request does not have the shape that the gateway reads'],
  wire_not_supported: [400, 'the provider of this model does not speak this API; the path names another one'],
  unsupported_media_type: [415, 'the content type must be application/json, not compressed'],
  unauthenticated: [401, 'the session credential is not valid'],
  forbidden: [403, 'the session may not do this'],
  superseded: [409, 'a newer claim of this session exists'],
  not_found: [404, 'the gateway has no such route'],
  project_not_found: [404, 'the project of this session is gone'],
  feature_disabled: [403, GATEWAY_OFF_TEXT],
  budget_reached: [402, 'the budget is used up'],
  provider_auth_failed: [
    403,
    'the provider refuses the key that is registered for it; an administrator has to replace it',
  ],
  address_not_allowed: [
    403,
    'the address of the provider may not be used; an administrator has to change its base URL',
  ],
  provider_failed: [400, 'the provider refuses this request'],
} as const satisfies Partial<Record<ProblemCode, readonly [number, string]>>;

/** Codes that have a final wording. */
export type FinalCode = keyof typeof FINAL;

/** Whether a code has a final wording. */
export const isFinalCode = (code: ProblemCode): code is FinalCode => Object.hasOwn(FINAL, code);

/** The message of a final code. */
export const finalMessage = (code: FinalCode): string => FINAL[code][1];

const TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'insufficient_quota',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  502: 'server_error',
  503: 'server_error',
  504: 'server_error',
};
/** Type of an error in OpenAI's words, by its status. */
export const typeOf = (status: number): string =>
  TYPES[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error');

/** A final error. A message that could make a harness call again is replaced by the code's own. */
export const finalError = (
  code: FinalCode,
  message?: string,
  headers: Readonly<Record<string, string>> = {},
): GatewayError => {
  const [status, own] = FINAL[code];
  const said = message !== undefined && isFinalText(message) ? message : own;
  return { status, code, message: said, type: typeOf(status), headers };
};

/** An error that is worth another call; the wait is 1 to 30 s. */
export const retryableError = (
  status: 429 | 502 | 503 | 504,
  code: ProblemCode,
  message: string,
  retryAfterSeconds: number,
): GatewayError => ({
  status,
  code,
  message,
  type: typeOf(status),
  headers: { 'retry-after': String(Math.min(Math.max(Math.ceil(retryAfterSeconds), 1), MAX_RETRY_AFTER_SECONDS)) },
});

/** What a provider answered instead of a completion. */
export type UpstreamRefusal = Readonly<{ status: number; retryAfter: string | undefined; body: string }>;

const OVERFLOW =
  /context.?length|maximum context|context window|too many (input )?tokens|prompt is too long|input is too long|reduce the length|exceeds? the (model|maximum|limit).{0,40}tokens/i;

const messageOf = (body: string): string => {
  try {
    const parsed = JSON.parse(body) as { error?: { message?: unknown } | string; message?: unknown };
    const inner = typeof parsed.error === 'object' ? parsed.error?.message : (parsed.error ?? parsed.message);
    return typeof inner === 'string' ? inner : '';
  } catch {
    return '';
  }
};

const secondsOf = (retryAfter: string | undefined, nowMs: number): number | undefined => {
  const waitMs = retryAfterMs(retryAfter, nowMs);
  return waitMs === undefined ? undefined : waitMs / 1_000;
};

/** The wait that a refusal asks for; undefined when it names none. Units: seconds. */
export const waitSecondsOf = (refusal: Pick<UpstreamRefusal, 'retryAfter'>, nowMs: number): number | undefined =>
  secondsOf(refusal.retryAfter, nowMs);

/** The message of a provider without digits, cut to 300 characters: a final error may carry it, keys it may have held are gone. */
const withoutDigits = (text: string): string =>
  text
    .replace(/\S*(?:sk|key|token|secret|bearer)[-_:=]\S*/gi, '[hidden]')
    .replace(/\b[\w-]{24,}\b/g, '[hidden]')
    .replace(/\d+/g, '#')
    .slice(0, 300);

/**
 * What the harness is told of a provider's refusal. A full context window keeps the code and the words that harnesses
 * compact by. A wait above 30 s is final, with the reset time in the header `x-beeuni-reset-at`.
 */
export const refusalError = (refusal: UpstreamRefusal, nowMs: number): GatewayError => {
  const { status } = refusal;
  const waitSeconds = secondsOf(refusal.retryAfter, nowMs);
  if ((status === 429 || status >= 500) && waitSeconds !== undefined && waitSeconds > MAX_RETRY_AFTER_SECONDS) {
    const resetAt = new Date(nowMs + Math.min(waitSeconds, 1e8) * 1000).toISOString();
    return finalError(
      'provider_failed',
      'the provider asks for a long pause; the header x-beeuni-reset-at says until when',
      {
        'x-beeuni-reset-at': resetAt,
      },
    );
  }
  if (status === 429)
    return retryableError(429, 'rate_limited', 'the provider asks to slow down; try again later', waitSeconds ?? 2);
  if (status >= 500)
    return retryableError(502, 'provider_failed', 'the provider failed; try again later', waitSeconds ?? 2);
  if (status === 401 || status === 403) return finalError('provider_auth_failed');
  if (status === 408)
    return retryableError(504, 'provider_timed_out', 'the provider gave up waiting; try again later', 1);
  if (status >= 300 && status < 400) {
    return finalError(
      'provider_failed',
      'the provider answers with a redirect, which is not followed; its base URL has to be changed',
    );
  }
  const message = messageOf(refusal.body);
  if (OVERFLOW.test(message) || refusal.body.includes('context_length_exceeded')) {
    return {
      status: 400,
      code: 'request_too_large',
      message: "the request is above the model's maximum context length. Please reduce the length of the messages.",
      type: 'invalid_request_error',
      headers: {},
      isOverflow: true,
    };
  }
  const said = withoutDigits(message);
  return finalError('provider_failed', said === '' ? undefined : `the provider refuses this request: ${said}`);
};
