// What an error of the gateway means for a turn, the same for every harness: by its code, else by its status.
// Pure. Must not know any single harness. Source: A142.
import type { TurnErrorCode } from '#schema/events/envelope.ts';

/** An error of a turn. `message` is at most 1,024 characters. */
export type TurnError = Readonly<{ code: TurnErrorCode; message: string }>;

const BY_CODE: Readonly<Record<string, TurnErrorCode>> = {
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

const own = (table: Readonly<Record<string, TurnErrorCode>>, key: string): TurnErrorCode | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined;

/** The turn's code for the code in an error's body; undefined for one that says nothing about the turn. */
export const codeOfBody = (code: string): TurnErrorCode | undefined => own(BY_CODE, code);

/** The turn's code for an HTTP status; undefined for one that says nothing about the turn. */
export const codeOfStatus = (status: number | string): TurnErrorCode | undefined => own(BY_STATUS, String(status));

/** A turn's error with its message cut. */
export const turnError = (code: TurnErrorCode, message: string): TurnError => ({
  code,
  message: message.slice(0, 1_024),
});
