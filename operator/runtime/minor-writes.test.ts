// The pace of statuses: K27.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MinorWrites } from './minor-writes.ts';

test('K27 a major change never waits', () => {
  const minors = new MinorWrites();
  assert.equal(minors.waitMs('a', 'minor', 0), 5_000);
  assert.equal(minors.waitMs('a', 'major', 1), 0);
});

test('K27 minor changes gather for five seconds, then go out at most every ten', () => {
  const minors = new MinorWrites();
  assert.equal(minors.waitMs('a', 'minor', 0), 5_000);
  assert.equal(minors.waitMs('a', 'minor', 2_000), 3_000, 'a second change does not start the time again');
  assert.equal(minors.waitMs('a', 'minor', 5_000), 0);
  minors.wrote('a', 5_000);
  assert.equal(minors.waitMs('a', 'minor', 6_000), 9_000);
  assert.equal(minors.waitMs('b', 'minor', 6_000), 5_000, 'objects do not wait for one another');
});

test('K27 a change that goes back by itself costs no write', () => {
  const minors = new MinorWrites();
  minors.waitMs('a', 'minor', 0);
  minors.settled('a');
  assert.equal(minors.waitMs('a', 'minor', 8_000), 5_000);
});
