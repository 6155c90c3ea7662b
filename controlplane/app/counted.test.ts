// What is counted of a call.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConflictError } from '#base/errors.ts';
import { counted } from './counted.ts';

test('a call is counted once, by its value or by the code of its error, and ends as it would have', async () => {
  const results: string[] = [];
  const count = (result: string): void => void results.push(result);
  const superseded = new ConflictError('superseded', 'a newer claim exists');
  const bug = new TypeError('a bug');
  assert.equal(await counted(Promise.resolve(7), count), 7);
  assert.deepEqual(await counted(Promise.resolve({ state: 'wait' }), count, ({ state }) => state), { state: 'wait' });
  await assert.rejects(counted(Promise.reject(superseded), count), (error) => error === superseded);
  await assert.rejects(counted(Promise.reject(bug), count), (error) => error === bug);
  assert.deepEqual(results, ['ok', 'wait', 'superseded', 'internal']);
});
