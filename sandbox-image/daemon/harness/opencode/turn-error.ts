// OpenCode's errors in the product's closed list of turn errors. Pure. Must not know turns.
// Source: A142, harness-runtimes §2.8.
import type { TurnErrorCode } from '#schema/events/envelope.ts';
import { codeOfBody, codeOfStatus, type TurnError, turnError } from '../contract/turn-error.ts';

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
    codeOfBody(codeInBody(fields['responseBody'])) ??
    (typeof name === 'string' ? BY_NAME[name] : undefined) ??
    codeOfStatus(status) ??
    'unknown';
  return turnError(code, text === '' ? fallback : text);
};
