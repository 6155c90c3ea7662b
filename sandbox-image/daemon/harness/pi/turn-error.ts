// Pi's errors in the product's closed list of turn errors: Pi gives one text, `STATUS: {json of the error}`.
// Pure. Must not know turns. Source: A142, harness-runtimes §3.3.
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

const BY_STATUS: Readonly<Record<string, TurnErrorCode>> = {
  '401': 'auth',
  '402': 'credits',
  '403': 'auth',
  '404': 'unknown_model',
  '413': 'request_too_large',
  '429': 'rate_limit',
};

const bodyOf = (text: string): Readonly<{ code: string; message: string }> => {
  const from = text.indexOf('{');
  if (from === -1) return { code: '', message: '' };
  try {
    const parsed: unknown = JSON.parse(text.slice(from));
    const { code, message } = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Record<string, unknown>;
    return { code: typeof code === 'string' ? code : '', message: typeof message === 'string' ? message : '' };
  } catch {
    return { code: '', message: '' };
  }
};

/** The error that a text of Pi names. */
export const turnErrorOf = (text: string | undefined): TurnError => {
  const whole = text === undefined || text === '' ? 'the harness reported an error' : text;
  const status = /^(\d{3})\b/.exec(whole)?.[1] ?? '';
  const body = bodyOf(whole);
  const code =
    BY_BODY_CODE[body.code] ?? BY_STATUS[status] ?? (/abort/i.test(whole) && status === '' ? 'aborted' : 'unknown');
  return { code, message: (body.message === '' ? whole : body.message).slice(0, 1_024) };
};
