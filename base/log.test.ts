// Log records: one line, bounded, without secrets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UnavailableError } from './errors.ts';
import { createLogger } from './log.ts';

const lines = () => {
  const written: string[] = [];
  return {
    written,
    log: createLogger({ level: 'info', base: { process: 'test' }, write: (line) => void written.push(line) }),
  };
};

test('K39 a record is one line of JSON, whatever a field holds', () => {
  const { written, log } = lines();
  log.info('hello', { name: 'a\nb\r\n{"level":"fatal"}' });
  assert.equal(written.length, 1);
  assert.equal(written[0]?.trimEnd().split('\n').length, 1);
  const record = JSON.parse(written[0] ?? '') as Record<string, unknown>;
  assert.equal(record['level'], 'info');
  assert.equal(record['process'], 'test');
});

test('K39 no canary leaves through a field, a nested field, an error, its cause or a URL', () => {
  const { written, log } = lines();
  const canary = 'eyJhbGciOiJSUzI1NiJ9.canarycanary.signature';
  const cause = new Error(`header was Bearer ${canary}`);
  log.error('failed', {
    token: canary,
    nested: { apiKey: canary, list: [{ password: canary }] },
    url: 'https://user:canaryPassword@example.com/x',
    text: `Authorization: Bearer ${canary}`,
    err: new UnavailableError('api_server_unavailable', 'no answer', { cause, detail: `key sk-canarycanarycanary` }),
  });
  assert.equal(written.length, 1);
  assert.doesNotMatch(written[0] ?? '', /canary/i);
});

test('K39 long fields are cut and deep ones are not followed', () => {
  const { written, log } = lines();
  let deep: unknown = 'bottom';
  for (let depth = 0; depth < 50; depth += 1) deep = { deep };
  log.info('big', { text: 'x'.repeat(1_000_000), deep, many: Array.from({ length: 1_000 }, (_, n) => n) });
  assert.ok((written[0] ?? '').length < 4_096);
});

test('an error of ours shows its code, another one its stack', () => {
  const { written, log } = lines();
  log.error('one', { err: new UnavailableError('timed_out', 'too slow') });
  log.error('two', { err: new TypeError('x is undefined') });
  const [one, two] = written.map((line) => (JSON.parse(line) as { err: Record<string, unknown> }).err);
  assert.equal(one?.['code'], 'timed_out');
  assert.equal(one?.['stack'], undefined);
  assert.match(String(two?.['stack']), /TypeError/);
});

test('a child adds its fields to every record, and debug is silent at info', () => {
  const { written, log } = lines();
  const child = log.child({ session: 's1' });
  child.debug('quiet');
  child.info('loud', { n: 1 });
  assert.equal(written.length, 1);
  assert.match(written[0] ?? '', /"session":"s1","n":1/);
});
