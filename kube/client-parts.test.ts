// The parts of the client that need no server: watch lines, errors, the gate, the server's clock, version check.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  BeeuniError,
  ConflictError,
  ForbiddenError,
  InvalidError,
  NotFoundError,
  UnavailableError,
} from '#base/errors.ts';
import { manualClock } from '#test/support/manual-clock.ts';
import { refuseUnusableClient } from './connection.ts';
import {
  isAlreadyExists,
  isConflict,
  KubeError,
  kubeErrorOf,
  readKubeError,
  readRetryAfterMs,
  toBeeuniError,
} from './errors.ts';
import { FailureGate } from './failure-gate.ts';
import { microTime } from './micro-time.ts';
import { PODS, PROJECTS, pathOf, TOKEN_REVIEWS } from './resource-types.ts';
import { ServerTime } from './server-time.ts';
import { readWatchEvents } from './watch-stream.ts';

const chunked = async function* (bytes: Uint8Array, sizes: readonly number[]) {
  let at = 0;
  for (let n = 0; at < bytes.length; n += 1) {
    const size = Math.max(1, sizes[n % Math.max(1, sizes.length)] ?? bytes.length);
    yield bytes.subarray(at, at + size);
    at += size;
  }
};

const collect = async (bytes: Uint8Array, sizes: readonly number[] = []) => {
  const events: unknown[] = [];
  for await (const event of readWatchEvents(chunked(bytes, sizes))) events.push(event);
  return events;
};

const event = (name: string) => ({ type: 'ADDED', object: { metadata: { name } } });

test('C1 version 2.0.0 of the package is refused by name, the one in use is not', () => {
  assert.throws(() => refuseUnusableClient('2.0.0'), /client-node 2\.0\.0/);
  refuseUnusableClient('2.0.1');
});

test('a watch is read the same however its bytes are split', async () => {
  const events = [event('ä😀'), event('b'), event('c')];
  const bytes = Buffer.from(events.map((one) => `${JSON.stringify(one)}\n`).join(''));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 10 }), async (sizes) => {
      assert.deepEqual(await collect(bytes, sizes), events);
    }),
    { numRuns: 50 },
  );
});

test('C5 every ERROR event ends the watch with its code and reason', async () => {
  const status = { kind: 'Status', code: 500, reason: 'InternalError', message: 'etcd is sad' };
  const bytes = Buffer.from(`${JSON.stringify(event('a'))}\n${JSON.stringify({ type: 'ERROR', object: status })}\n`);
  await assert.rejects(
    collect(bytes),
    (error: unknown) => error instanceof KubeError && error.code === 500 && error.reason === 'InternalError',
  );
});

test('a watch that ends in the middle of a line, or holds no JSON, ends with an error', async () => {
  for (const text of [
    '{"type":"ADDED","object":{"metadata":{}}}\n{"type":"MOD',
    'oops\n',
    '{"type":"NEW","object":{"metadata":{}}}\n',
    '{"type":"ADDED"}\n',
  ]) {
    await assert.rejects(
      collect(Buffer.from(text)),
      (error: unknown) => error instanceof KubeError && error.reason === 'UnreadableWatch',
    );
  }
});

test('C17 an error has its code as number, its reason and its causes', () => {
  const body = {
    kind: 'Status',
    code: 422,
    reason: 'Invalid',
    message: 'spec.prompt is required',
    details: { causes: [{ field: 'spec.prompt', reason: 'FieldValueRequired', message: 'required' }] },
  };
  const error = readKubeError(422, JSON.stringify(body));
  assert.equal(error.code, 422);
  assert.deepEqual(error.causes, [{ field: 'spec.prompt', reason: 'FieldValueRequired', message: 'required' }]);
  assert.equal(readKubeError(502, '<html>').reason, 'Http502');
});

test('a cause does not carry the object that is refused', () => {
  const causeOf = (message: string): string | undefined =>
    readKubeError(
      422,
      JSON.stringify({
        kind: 'Status',
        code: 422,
        reason: 'Invalid',
        message: 'm',
        details: { causes: [{ field: 'f', message }] },
      }),
    ).causes[0]?.message;
  const object = JSON.stringify({ spec: { prompt: 'long: {"a": 1}' } });
  assert.equal(causeOf(`Invalid value: ${object}: only one may be set`), 'Invalid value: only one may be set');
  assert.equal(causeOf(`Invalid value: ${JSON.stringify(object)}: no`), 'Invalid value: no');
  assert.equal(
    causeOf(`Invalid value: ${object}: strict decoding error: unknown field "x"`),
    'strict decoding error: unknown field "x"',
  );
  assert.equal(causeOf('Invalid value: "Abc": must be lower case'), 'Invalid value: "Abc": must be lower case');
});

test('each status has its class, and a refusal of our own credentials is nobody else’s fault', () => {
  const classes: readonly (readonly [number, string, new (...args: never[]) => BeeuniError])[] = [
    [400, 'BadRequest', InvalidError],
    [422, 'Invalid', InvalidError],
    [415, 'UnsupportedMediaType', InvalidError],
    [401, 'Unauthorized', UnavailableError],
    [403, 'Forbidden', ForbiddenError],
    [404, 'NotFound', NotFoundError],
    [409, 'Conflict', ConflictError],
    [410, 'Expired', UnavailableError],
    [429, 'TooManyRequests', UnavailableError],
    [500, 'InternalError', UnavailableError],
    [503, 'ServiceUnavailable', UnavailableError],
    [0, 'NoAnswer', UnavailableError],
  ];
  for (const [code, reason, type] of classes) {
    const error = toBeeuniError(new KubeError(code, reason, 'text'), 'get Pod');
    assert.ok(error instanceof type, `${code}`);
    assert.equal(kubeErrorOf(error)?.code, code);
  }
  const exists = toBeeuniError(new KubeError(409, 'AlreadyExists', 'text'), 'create Pod');
  assert.equal(exists.code, 'already_exists');
  assert.ok(isAlreadyExists(exists) && !isConflict(exists));
});

test('Retry-After is read as seconds or as a date, and bounded', () => {
  const now = Date.UTC(2026, 0, 1);
  assert.equal(readRetryAfterMs('3', now), 3_000);
  assert.equal(readRetryAfterMs(new Date(now + 5_000).toUTCString(), now), 5_000);
  assert.equal(readRetryAfterMs('86400000', now), 3_600_000);
  assert.equal(readRetryAfterMs('soon', now), undefined);
});

test('K38 after a failure a kind has one turn a second, others are free, and a success frees it', async () => {
  const clock = manualClock();
  let throttled = 0;
  const gate = new FailureGate({ clock, onThrottled: () => (throttled += 1) });
  const signal = new AbortController().signal;
  const turns: number[] = [];
  gate.failed('pods');
  await gate.enter('secrets', signal);
  const started = clock.monotonicMs();
  const waiting = [1, 2, 3].map(() => gate.enter('pods', signal).then(() => turns.push(clock.monotonicMs() - started)));
  await clock.advance(3_000);
  await Promise.all(waiting);
  assert.deepEqual(turns, [1_000, 2_000, 3_000]);
  gate.succeeded('pods');
  await gate.enter('pods', signal);
  assert.equal(throttled, 3);
});

test('FA8 a pause that the server asks for is obeyed, and nobody is held for long', async () => {
  const clock = manualClock();
  const gate = new FailureGate({ clock, onThrottled: () => {} });
  gate.failed('pods', 20_000);
  await assert.rejects(gate.enter('pods', new AbortController().signal), (error: unknown) => {
    assert.ok(error instanceof UnavailableError);
    assert.equal(error.retryAfterMs, 20_000);
    return true;
  });
});

test('K20 the server’s clock is known to a second, whatever the local one says, and follows when it is set', () => {
  const time = new ServerTime();
  assert.equal(time.at(0), undefined);
  const serverEpoch = Date.UTC(2030, 5, 1, 0, 0, 0, 250);
  for (let local = 0; local < 5_000; local += 370) {
    time.observe(new Date(serverEpoch + local + 5).toUTCString(), local, local + 10);
  }
  assert.ok(Math.abs((time.at(5_000) ?? 0) - (serverEpoch + 5_000)) < 1_000);
  time.observe(new Date(serverEpoch + 3_600_000).toUTCString(), 5_000, 5_010);
  assert.ok(Math.abs((time.at(5_010) ?? 0) - (serverEpoch + 3_600_000)) < 1_000);
});

test('C16 a MicroTime has six digits', () => {
  assert.equal(microTime(Date.UTC(2026, 10, 30, 12, 41, 7, 12)), '2026-11-30T12:41:07.012000Z');
});

test('paths name group, namespace, name and subresource', () => {
  assert.equal(pathOf(PODS, { namespace: 'a', name: 'b' }), '/api/v1/namespaces/a/pods/b');
  assert.equal(pathOf(PODS, {}), '/api/v1/pods');
  assert.equal(
    pathOf(PROJECTS, { namespace: 'a', name: 'b', subresource: 'status' }),
    '/apis/beeuni.dev/v1alpha1/namespaces/a/projects/b/status',
  );
  assert.equal(pathOf(TOKEN_REVIEWS, {}), '/apis/authentication.k8s.io/v1/tokenreviews');
  assert.equal(pathOf(PODS, { namespace: '../x', name: 'a/b' }), '/api/v1/namespaces/..%2Fx/pods/a%2Fb');
});
