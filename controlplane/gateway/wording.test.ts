// The words of errors: final ones must not make a harness call again.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PROBLEMS, type ProblemCode } from '#schema/problem.ts';
import { errorBody, errorEvent, gatewayErrorShape } from './error-shape.ts';
import { finalError, isFinalText, refusalError } from './wording.ts';

/** What two harnesses look for in a body before they call again. Source: measured on OpenCode 1.18 and Pi 1.6. */
const HARNESS_RETRIES =
  /429|500|502|503|504|524|rate.?limit|too many requests|server.?error|overloaded|try again later|service.?unavailable|internal.?error|network.?error|connection.?error|connection.?refused|fetch failed|socket hang up|timed? out|timeout|terminated/i;

const NOW = Date.UTC(2026, 10, 30);
const refusal = (status: number, body: unknown = {}, retryAfter?: string) =>
  refusalError({ status, retryAfter, body: typeof body === 'string' ? body : JSON.stringify(body) }, NOW);

test('every final error has a 4xx status and a body without digits and without words that harnesses retry by', () => {
  const codes = (Object.keys(PROBLEMS) as ProblemCode[]).filter((code) => {
    try {
      finalError(code as Parameters<typeof finalError>[0]);
      return true;
    } catch {
      return false;
    }
  });
  assert.ok(codes.length >= 15);
  for (const code of codes) {
    const error = finalError(code as Parameters<typeof finalError>[0]);
    assert.ok(error.status >= 400 && error.status < 500 && error.status !== 429, code);
    assert.ok(isFinalText(error.message), code);
    assert.equal(HARNESS_RETRIES.test(errorBody('openai', error)), false, code);
    assert.equal(/\d/.test(errorBody('openai', error)), false, code);
  }
});

test('whatever a provider writes into a refusal, the final error does not make a harness call again', () => {
  const words = fc.constantFrom(
    '429',
    '503 ',
    'rate limit',
    'Overloaded',
    'server error',
    'try again later',
    'timeout',
    'x ',
    'req_7f500ab ',
    'model gpt-4 ',
  );
  fc.assert(
    fc.property(
      fc.constantFrom(400, 401, 403, 404, 409, 413, 422),
      fc.array(fc.oneof(words, fc.string()), { maxLength: 8 }),
      (status, parts) => {
        const error = refusal(status, { error: { message: parts.join('') } });
        assert.equal(HARNESS_RETRIES.test(errorBody('openai', error)), false, errorBody('openai', error));
        if (error.isOverflow === true) return;
        assert.equal(/\d/.test(errorBody('openai', error)), false, errorBody('openai', error));
      },
    ),
    { numRuns: 500 },
  );
});

test('a harmless message of the provider is passed on, and a key in it is not', () => {
  assert.match(refusal(400, { error: { message: 'tools must be a list' } }).message, /tools must be a list$/);
  const leaked = errorBody('openai', refusal(400, { error: { message: 'bad field for sk-canary-abcdef' } }));
  assert.equal(leaked.includes('canary'), false);
  assert.equal(
    errorBody('openai', refusal(401, { error: { message: 'Incorrect API key provided: sk-canary' } })).includes(
      'canary',
    ),
    false,
  );
});

test('A142 a full context window keeps the code that harnesses compact by', () => {
  const error = refusal(400, {
    error: { message: "This model's maximum context length is 8192 tokens.", code: 'context_length_exceeded' },
  });
  assert.equal(error.status, 400);
  assert.equal(
    (JSON.parse(errorBody('openai', error)) as { error: { code: string } }).error.code,
    'context_length_exceeded',
  );
});

test('FC3 a pause above 30 s is final and names its end in a header, a shorter one is retryable', () => {
  const long = refusal(429, {}, '86400');
  assert.ok(long.status < 500 && long.status !== 429);
  assert.equal(long.headers['x-beeuni-reset-at'], '2026-12-01T00:00:00.000Z');
  assert.equal(HARNESS_RETRIES.test(errorBody('openai', long)), false);
  assert.deepEqual([refusal(429, {}, '5').status, refusal(429, {}, '5').headers], [429, { 'retry-after': '5' }]);
  assert.equal(refusal(503, {}, new Date(NOW + 90_000).toUTCString()).headers['x-beeuni-reset-at'] !== undefined, true);
  assert.equal(refusal(500, {}, 'soon').headers['retry-after'], '2');
});

test('a redirect is refused for good', () => {
  assert.equal(refusal(302).status, 400);
});

test('the shapes of errors around the gateway are worded by the same rule', () => {
  for (const errors of ['openai', 'anthropic'] as const) {
    const answer = { status: 401, code: 'unauthenticated', message: 'credential bs_0123 timed out' } as const;
    const body = JSON.stringify(
      gatewayErrorShape(errors)({ ...answer, headers: {}, details: undefined, isBug: false }, 'r'),
    );
    assert.equal(HARNESS_RETRIES.test(body), false);
    assert.match(body, /credential is not valid/);
  }
});

test("errors of the messages API have Anthropic's shape, and a stream of each API ends with an event that its client throws", () => {
  const body = JSON.parse(errorBody('anthropic', finalError('model_not_allowed'))) as {
    type: string;
    error: { type: string };
  };
  assert.deepEqual([body.type, body.error.type], ['error', 'permission_error']);
  const error = { status: 502, code: 'provider_failed', message: 'it broke', type: 'server_error' } as const;
  assert.match(
    errorEvent({ id: 'messages', errors: 'anthropic' }, error),
    /^event: error\ndata: \{"type":"error","error"/,
  );
  assert.match(
    errorEvent({ id: 'responses', errors: 'openai' }, error),
    /^event: error\ndata: \{"type":"error".*"error":\{/,
  );
  assert.match(errorEvent({ id: 'chat', errors: 'openai' }, error), /^data: \{"error":\{/);
});
