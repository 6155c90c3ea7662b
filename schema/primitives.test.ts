// What the shared parts of schemas take, and how they refuse the rest.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nullableSwitch } from './primitives.ts';

test('a switch that takes null says so', () => {
  for (const value of [true, false, null]) assert.equal(nullableSwitch.parse(value), value);
  for (const value of ['yes', 1, {}]) {
    assert.equal(nullableSwitch.safeParse(value).error?.issues[0]?.message, 'must be true, false or null');
  }
});
