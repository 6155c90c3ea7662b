import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { makeTurnEnd } from './turn-end.ts';

test('what one turn gathers is written at its end in order, and what comes meanwhile a turn later', async () => {
  const written: string[] = [];
  const writeLater = makeTurnEnd((item: string) => {
    written.push(item);
    if (item === 'b') writeLater('c');
  });
  writeLater('a');
  await Promise.resolve();
  writeLater('b');
  assert.deepEqual(written, []);
  await turn();
  assert.deepEqual(written, ['a', 'b']);
  await turn();
  assert.deepEqual(written, ['a', 'b', 'c']);
});
