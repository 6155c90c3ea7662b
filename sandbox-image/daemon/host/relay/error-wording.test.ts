// Which errors a harness tries again, judged by the text rules that OpenCode 1.18.33 goes by.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { errorBody, MAX_RETRY_AFTER_SECONDS, wordError } from './error-wording.ts';

/** What makes OpenCode call again: a 5xx or one of these in the body. Source: harness-runtimes §2.8. */
const RETRIED =
  /429|500|502|503|504|524|rate.?limit|server.?error|overloaded|try again later|too many requests|unavailable/i;
const isRetried = (error: ReturnType<typeof wordError>): boolean =>
  error.status >= 500 || RETRIED.test(errorBody(error));

const failure = (status: number, code: string | null, message: string, retryAfter?: string) => ({
  status,
  body: JSON.stringify({ error: { message, code } }),
  retryAfter,
});

describe('wordError', () => {
  it('known-bugs K9 makes a final error final, whatever digits and ids its text holds', () => {
    const finals = [
      failure(402, 'budget_reached', 'request 7f500ab: budget of 429 USD used up'),
      failure(502, 'provider_auth_failed', 'bad key sk-503, try again later'),
      failure(404, 'unknown_model', 'no model gpt-500'),
      failure(400, null, 'server_error 500: odd'),
      failure(413, 'request_too_large', '2064384 bytes'),
      failure(409, 'superseded', 'generation 502'),
      failure(422, 'err_429', 'rate limit'),
      { status: 418, body: '<html>503</html>', retryAfter: '99999' },
    ];
    for (const each of finals) {
      const worded = wordError(each);
      assert.ok(!isRetried(worded), `${each.body} -> ${errorBody(worded)}`);
      assert.ok(worded.status >= 400 && worded.status < 500);
      assert.ok(!/\d/.test(errorBody(worded)), errorBody(worded));
      assert.equal(worded.retryAfterSeconds, undefined);
    }
  });

  it('says which budget it was, as the gateway words it', () => {
    const told = 'the project has begun as many turns as it may in a day';
    assert.equal(wordError(failure(402, 'budget_reached', told)).message, told);
    assert.match(wordError(failure(402, 'budget_reached', '')).message, /of this session or project/);
  });

  it('known-bugs K6 caps the wait of a retryable error', () => {
    assert.equal(wordError(failure(429, null, 'slow down', '86400')).retryAfterSeconds, MAX_RETRY_AFTER_SECONDS);
    assert.equal(wordError(failure(503, null, '', '1e9')).retryAfterSeconds, MAX_RETRY_AFTER_SECONDS);
    assert.equal(wordError(failure(429, null, '', 'Wed, 21 Oct 2026 07:28:00 GMT')).retryAfterSeconds, 2);
    assert.equal(wordError(failure(429, null, '', '-5')).retryAfterSeconds, 2);
  });

  it('lets a harness try again after 429 and 5xx', () => {
    for (const status of [429, 500, 502, 503, 504])
      assert.ok(isRetried(wordError(failure(status, null, ''))), String(status));
  });

  it('FC3 says of a held budget that calls hold it, in words that start a retry', () => {
    const worded = wordError(failure(429, 'budget_held', 'the rest is set aside', '5'));
    assert.match(worded.message, /budget is set aside for calls that run/);
    assert.deepEqual([worded.status, worded.code, worded.retryAfterSeconds], [429, 'budget_held', 5]);
    assert.ok(isRetried(worded));
  });

  it('A47 keeps the code by which a harness knows a full context window', () => {
    const worded = wordError(failure(400, 'context_length_exceeded', 'maximum context length is 8192 tokens'));
    assert.deepEqual([worded.status, worded.code], [400, 'context_length_exceeded']);
    assert.ok(!isRetried(worded));
  });
});
