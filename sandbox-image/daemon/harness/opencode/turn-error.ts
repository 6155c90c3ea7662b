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

type Fields = Readonly<Record<string, unknown>>;

const objectIn = (text: unknown): Fields => {
  if (typeof text !== 'string' || !text.startsWith('{')) return {};
  try {
    return JSON.parse(text) as Fields;
  } catch {
    return {};
  }
};

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** The error of a message or session in our words; undefined for no error at all. */
export const turnErrorOf = (error: unknown): TurnError | undefined => {
  if (typeof error !== 'object' || error === null) return undefined;
  const { name, data } = error as { name?: unknown; data?: unknown };
  const fields = fieldsOf(data);
  // An error that came inside a stream is the text of the message, whole.
  const inside = objectIn(fields['message']);
  const text = textOf(inside['message']) || textOf(fields['message']);
  const fallback = typeof name === 'string' ? name : 'the harness reported an error';
  const status = typeof fields['statusCode'] === 'number' ? fields['statusCode'] : 0;
  const code =
    codeOfBody(textOf(fieldsOf(objectIn(fields['responseBody'])['error'])['code']) || textOf(inside['code'])) ??
    (typeof name === 'string' ? BY_NAME[name] : undefined) ??
    codeOfStatus(status) ??
    'unknown';
  return turnError(code, text === '' ? fallback : text);
};
