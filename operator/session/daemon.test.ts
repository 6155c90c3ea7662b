// Conditions that mirror the daemon, where the words matter.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aHealth, aPod, aSessionFact, observed, podUid } from '#test/support/session-fixtures.ts';
import { daemonNote, daemonOf } from './daemon.ts';

test('a push that failed is told by WorkspaceReady, which stays True: the work is there', () => {
  const pod = aPod();
  const fact = aSessionFact(podUid(1), { health: aHealth({ pushError: 'the repository refused it' }) });
  const o = observed({ pods: [pod], fact });
  const note = daemonNote('WorkspaceReady', o, daemonOf(o, pod));
  assert.equal(note.status, 'True');
  assert.match(note.message, /is checked out; its newest push failed: the repository refused it$/);
});
