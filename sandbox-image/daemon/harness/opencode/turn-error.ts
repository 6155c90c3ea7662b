// OpenCode's errors in the product's closed list of turn errors. Pure. Must not know turns.
// Source: A142, harness-runtimes §2.8.
import type { TurnErrorCode } from '#schema/events/envelope.ts';

/** An error of a turn. `message` is at most 1,024 characters. */
export type TurnError = Readonly<{ code: TurnErrorCode; message: string }>;

const BY_BODY_CODE: Readonly<Record<string, TurnErrorCode>> = {
  budget_reached: 'credits',
  insufficient_quota: 'credits',
  unknown_model: 'unknown_model',
  model_disabled: 'unknown_model',
  model_not_allowed: 'unknown_model',
  provider_disabled: 'unknown_model',
  request_too_large: 'request_too_large',
  body_too_large: 'request_too_large',
  context_length_exceeded: 'context_length',
  provider_auth_failed: 'auth',
  invalid_api_key: 'auth',
  unauthenticated: 'auth',
  superseded: 'auth',
  rate_limited: 'rate_limit',
  upstream_busy: 'rate_limit',
};

const BY_STATUS: Readonly<Record<number, TurnErrorCode>> = {
  401: 'auth',
  402: 'credits',
  403: 'auth',
  404: 'unknown_model',
  413: 'request_too_large',
  429: 'rate_limit',
};

const BY_NAME: Readonly<Record<string, TurnErrorCode>> = {
  MessageAbortedError: 'aborted',
  ProviderAuthError: 'auth',
  MessageOutputLengthError: 'output_length',
  ContextOverflowError: 'context_length',
  ProviderModelNotFoundError: 'unknown_model',
};

const codeInBody = (body: unknown): string => {
  if (typeof body !== 'string') return '';
  try {
    const parsed: unknown = JSON.parse(body);
    const error = typeof parsed === 'object' && parsed !== null && 'error' in parsed ? parsed.error : undefined;
    return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
      ? error.code
      : '';
  } catch {
    return '';
  }
};

/** The error of a message or session in our words; undefined for no error at all. */
export const turnErrorOf = (error: unknown): TurnError | undefined => {
  if (typeof error !== 'object' || error === null) return undefined;
  const { name, data } = error as { name?: unknown; data?: unknown };
  const fields = (typeof data === 'object' && data !== null ? data : {}) as Record<string, unknown>;
  const text = typeof fields['message'] === 'string' ? fields['message'] : '';
  const fallback = typeof name === 'string' ? name : 'the harness reported an error';
  const status = typeof fields['statusCode'] === 'number' ? fields['statusCode'] : 0;
  const code =
    BY_BODY_CODE[codeInBody(fields['responseBody'])] ??
    (typeof name === 'string' ? BY_NAME[name] : undefined) ??
    BY_STATUS[status] ??
    'unknown';
  return { code, message: (text === '' ? fallback : text).slice(0, 1_024) };
};
