import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onAbort } from './on-abort.ts';

test('a signal that fires later calls once', () => {
  const controller = new AbortController();
  let calls = 0;
  onAbort(controller.signal, () => {
    calls += 1;
  });
  assert.equal(calls, 0);
  controller.abort();
  controller.abort();
  assert.equal(calls, 1);
});

test('a signal that has fired calls at once', () => {
  let calls = 0;
  onAbort(AbortSignal.abort(), () => {
    calls += 1;
  });
  assert.equal(calls, 1);
});

test('who stopped listening is not called', () => {
  const controller = new AbortController();
  let calls = 0;
  onAbort(controller.signal, () => {
    calls += 1;
  })();
  controller.abort();
  assert.equal(calls, 0);
});
