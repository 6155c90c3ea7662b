// OpenCode's errors as turn errors: by the code in the gateway's body, by name, by status.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { turnErrorOf } from './turn-error.ts';

const api = (statusCode: number, code: string | null, message = 'no') => ({
  name: 'APIError',
  data: { message, statusCode, responseBody: JSON.stringify({ error: { message, code } }) },
});

describe('turnErrorOf', () => {
  it('A142 goes by the code of the gateway before the status', () => {
    assert.equal(turnErrorOf(api(402, 'budget_reached'))?.code, 'credits');
    assert.equal(turnErrorOf(api(404, 'unknown_model'))?.code, 'unknown_model');
    assert.equal(turnErrorOf(api(400, 'context_length_exceeded'))?.code, 'context_length');
    assert.equal(turnErrorOf(api(413, 'request_too_large'))?.code, 'request_too_large');
    assert.equal(turnErrorOf(api(403, 'provider_auth_failed'))?.code, 'auth');
  });

  it('A142 falls back to the status, then to unknown', () => {
    assert.equal(turnErrorOf(api(401, null))?.code, 'auth');
    assert.equal(turnErrorOf(api(429, null))?.code, 'rate_limit');
    assert.equal(turnErrorOf(api(418, null))?.code, 'unknown');
    assert.equal(turnErrorOf({ name: 'UnknownError', data: { message: 'odd' } })?.code, 'unknown');
  });

  it('A142 reads an error that came inside a stream, which OpenCode keeps as the text of a message', () => {
    const inside = (code: string) => ({
      name: 'UnknownError',
      data: { message: JSON.stringify({ message: 'it broke', type: 'invalid_request_error', param: null, code }) },
    });
    assert.deepEqual(turnErrorOf(inside('provider_failed')), { code: 'unknown', message: 'it broke' });
    assert.equal(turnErrorOf(inside('superseded'))?.code, turnErrorOf(api(409, 'superseded'))?.code);
    assert.equal(turnErrorOf(inside('budget_reached'))?.code, 'credits');
    assert.equal(turnErrorOf({ name: 'UnknownError', data: { message: '{"odd":1}' } })?.message, '{"odd":1}');
  });

  it("A142 knows OpenCode's own names", () => {
    assert.equal(turnErrorOf({ name: 'MessageAbortedError', data: {} })?.code, 'aborted');
    assert.equal(turnErrorOf({ name: 'ContextOverflowError', data: {} })?.code, 'context_length');
    assert.equal(turnErrorOf({ name: 'MessageOutputLengthError', data: {} })?.code, 'output_length');
  });

  it('keeps messages below 1,024 characters and absent errors absent', () => {
    assert.equal(turnErrorOf(api(400, null, 'x'.repeat(5_000)))?.message.length, 1_024);
    assert.equal(turnErrorOf(undefined), undefined);
    assert.equal(turnErrorOf(null), undefined);
  });
});
