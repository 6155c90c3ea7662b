// Pi's errors as turn errors: by the code in the error's body, then by its status.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { turnErrorOf } from './turn-error.ts';

const api = (status: number, code: string | null, message = 'no'): string =>
  `${status}: ${JSON.stringify({ message, type: 't', param: null, code })}`;

describe('turnErrorOf', () => {
  it('A142 goes by the code of the gateway before the status, and shows its message', () => {
    assert.deepEqual(turnErrorOf(api(402, 'budget_reached', 'used up')), { code: 'credits', message: 'used up' });
    assert.equal(turnErrorOf(api(404, 'unknown_model')).code, 'unknown_model');
    assert.equal(turnErrorOf(api(400, 'context_length_exceeded')).code, 'context_length');
    assert.equal(turnErrorOf(api(413, 'request_too_large')).code, 'request_too_large');
    assert.equal(turnErrorOf(api(403, 'provider_auth_failed')).code, 'auth');
  });

  it('A142 falls back to the status, then to unknown', () => {
    assert.equal(turnErrorOf(api(401, null)).code, 'auth');
    assert.equal(turnErrorOf(api(429, null)).code, 'rate_limit');
    assert.equal(turnErrorOf(api(418, null)).code, 'unknown');
    assert.equal(turnErrorOf('Stream ended without finish_reason').code, 'unknown');
    assert.equal(turnErrorOf('Request was aborted.').code, 'aborted');
  });

  it('keeps messages below 1,024 characters and never fails on what is no JSON', () => {
    assert.equal(turnErrorOf(api(400, null, 'x'.repeat(5_000))).message.length, 1_024);
    assert.equal(turnErrorOf('500: {half').message, '500: {half');
    assert.equal(turnErrorOf(undefined).code, 'unknown');
  });
});
