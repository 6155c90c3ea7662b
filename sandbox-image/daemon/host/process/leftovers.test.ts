// Who is ended after a harness: by mark, by ancestry, and as an orphan where only we make orphans.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { leftoversOf, type ProcessEntry } from './leftovers.ts';

const entry = (pid: number, parent: number, marked = false): ProcessEntry => ({ pid, parent, marked });
const none = new Set<number>();

describe('leftoversOf', () => {
  it('FB6 finds marked processes and their unmarked descendants, and nobody else', () => {
    const processes = [entry(1, 0), entry(7, 1), entry(20, 7, true), entry(21, 20), entry(22, 21), entry(30, 7)];
    assert.deepEqual(leftoversOf(processes, 7, { orphans: false, known: none }), [20, 21, 22]);
  });

  it('FB6 takes orphans only in a container of our own, and never itself, PID 1 or what is known', () => {
    const processes = [entry(1, 0), entry(7, 1), entry(40, 1), entry(41, 1)];
    assert.deepEqual(leftoversOf(processes, 7, { orphans: false, known: none }), []);
    assert.deepEqual(leftoversOf(processes, 7, { orphans: true, known: new Set([41]) }), [40]);
  });
});
