// Pi's errors in the product's closed list of turn errors: Pi gives one text, `STATUS: {json of the error}`.
// Pure. Must not know turns. Source: A142, harness-runtimes §3.3.
import { codeOfBody, codeOfStatus, type TurnError, turnError } from '../contract/turn-error.ts';

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
    codeOfBody(body.code) ?? codeOfStatus(status) ?? (/abort/i.test(whole) && status === '' ? 'aborted' : 'unknown');
  return turnError(code, body.message === '' ? whole : body.message);
};
