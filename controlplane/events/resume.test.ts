// Where readers go on, and frames.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { frameOf, namedPosition, resumeAt } from './resume.ts';

test('FD5 the last event id wins over since, and what no stream of ours sent is no position', () => {
  assert.equal(namedPosition('7', 3), 7);
  assert.equal(namedPosition(undefined, 3), 3);
  assert.equal(namedPosition('', 3), 3);
  for (const text of ['-1', '1e3', 'abc', '1 ', '99999999999999999999']) {
    assert.ok(Number.isNaN(namedPosition(text, 3)), text);
  }
});

test('law: a position inside the log is kept exactly, every other one is reset to its beginning', () => {
  const cases = fc.record({
    position: fc.option(fc.oneof(fc.integer({ min: -5, max: 120 }), fc.constant(Number.NaN)), { nil: undefined }),
    firstSeq: fc.integer({ min: 1, max: 50 }),
    length: fc.integer({ min: 0, max: 50 }),
  });
  fc.assert(
    fc.property(cases, ({ position, firstSeq, length }) => {
      const range = { firstSeq, headSeq: firstSeq + length - 1 };
      const { after, reset } = resumeAt(position, range);
      assert.ok(after >= firstSeq - 1 && after <= range.headSeq);
      if (position === undefined) assert.deepEqual([after, reset], [firstSeq - 1, false]);
      else assert.equal(reset, after !== position);
    }),
  );
});

test('law: whatever an event holds, its frame is one event whose data is the envelope', () => {
  const event = fc.record({
    session_uid: fc.string(),
    seq: fc.integer({ min: 1 }),
    id: fc.string(),
    type: fc.string({ maxLength: 64 }),
    thread_id: fc.string(),
    turn_id: fc.option(fc.string()),
    at: fc.constant('2026-11-30T12:00:00.000Z'),
    hidden: fc.boolean(),
    caused_by: fc.constant(null),
    data: fc.jsonValue().map((value) => JSON.stringify({ value })),
  });
  fc.assert(
    fc.property(event, (made) => {
      const frame = frameOf(made);
      const lines = frame.text.split('\n');
      assert.equal(lines.length, 5);
      assert.equal(lines[0], `id: ${made.seq}`);
      assert.match(lines[1] ?? '', /^event: [A-Za-z0-9._-]+$/);
      const envelope = JSON.parse((lines[2] ?? '').slice('data: '.length)) as Record<string, unknown>;
      assert.deepEqual(envelope['data'], JSON.parse(made.data));
      assert.equal(envelope['type'], JSON.parse(JSON.stringify(made.type)));
      assert.equal(frame.bytes, Buffer.byteLength(frame.text));
    }),
  );
});
